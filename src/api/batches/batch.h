/* batch.h - the stored document of one batch.
 *
 *   created (empty, or with its runs at once) ─► sealed: each item is a run or an error
 *
 * The document does not store whether the batch has ended: its runs determine that. */
#pragma once

#include "api/request/call.h"

struct batch_run {
    char id[ID_MAX];
    /* for the call of SDK 3.x, which returns them; otherwise NULL */
    struct bytes *task, *key;
};

/* An item that could not become a run. */
struct batch_error {
    uint32_t index;
    struct bytes *task;
};

struct batch {
    char id[ID_MAX];
    uint32_t version; /* of the document; 0: not stored yet */
    uint32_t run_count;
    int64_t created_at, updated_at; /* Unix ms */
    int64_t sealed_at;              /* Unix ms; 0: items are missing */
    bool resume;                    /* the parent waits for the runs */
    bool complete;                  /* every item resolved to an older run */
    struct bytes *parent;           /* run id; NULL: none */
    struct bytes *key;              /* idempotency key as shown; NULL: none */
    struct bytes *token;    /* hash of the one-time token that created it; NULL: none */
    struct batch_run *runs; /* in the order of the items */
    size_t count;
    struct batch_error *errors;
    size_t error_count;
};

enum { BATCH_RUNS_MAX = 1000 };

/* The error message of an item that could not become a run. */
#define BATCH_ITEM_TOO_LARGE "The item is larger than 3145728 bytes"

void batch_finish(struct batch *batch);

/* Returns the body of the document; the caller's reference. */
struct bytes *batch_write(const struct batch *batch);

/* Reads a document. Returns ERR_INTERNAL if it is malformed; then *batch is unchanged. */
enum err batch_read(const struct document *document, struct batch *batch);

/* Loads a batch of the call's environment. The batch owns its texts. done gets
 * ERR_NOT_FOUND if there is none. */
struct batch_load {
    struct store_load load;
    struct batch batch; /* out; the caller's to finish */
    void (*done)(struct batch_load *load, enum err status);
};
void batch_load_begin(struct api_call *call, struct slice id, struct batch_load *load,
                      void (*done)(struct batch_load *load, enum err status));

/* Returns true if all its runs have ended, or if none could be created. */
bool batch_has_ended(const struct batch *batch, const struct environment *env);

/* Returns the number of its runs that have not ended. */
size_t batch_count_unfinished(const struct batch *batch, const struct environment *env);

/* Returns the id of one of its runs that have not ended, chosen at random; NULL: all
 * have ended. */
const char *batch_draw_unfinished(const struct batch *batch, const struct environment *env);

/* Returns PENDING, COMPLETED, PARTIAL_FAILED or ABORTED. */
const char *batch_status(const struct batch *batch, const struct environment *env);
