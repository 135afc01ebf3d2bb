/* batch.h - what is kept about one batch: a document under its id.
 *
 *   created (phase 1, or with its runs at once) ─► sealed: all items are runs, or errors
 *
 * Its runs are looked at where they are: whether a batch is over is not written down. */
#pragma once

#include "api/request/call.h"

struct batch_run {
    char id[ID_MAX];
    struct bytes *task, *key; /* of the 3.x call, which shows them again; else NULL */
};

/* An item that could not become a run. */
struct batch_error {
    uint32_t index;
    struct bytes *task;
};

struct batch {
    char id[ID_MAX];
    uint32_t version; /* of the document; 0: not written yet */
    uint32_t run_count;
    int64_t created_at, updated_at; /* Unix ms */
    int64_t sealed_at;              /* 0: items are awaited */
    bool resume;                    /* the parent waits for the runs */
    bool complete;                  /* every item led to an older run */
    struct bytes *parent;           /* run id; NULL: none */
    struct bytes *key;              /* of idempotency, as shown; NULL: none */
    struct bytes *token;            /* hash of the one-time token that made it */
    struct batch_run *runs;         /* in the order of the items */
    size_t count;
    struct batch_error *errors;
    size_t error_count;
};

enum { BATCH_RUNS_MAX = 1000 };

/* What is said of an item that could not become a run. */
#define BATCH_ITEM_TOO_LARGE "The item is larger than 3145728 bytes"

void batch_finish(struct batch *batch);

/* The body of the document. */
struct bytes *batch_write(const struct batch *batch);

/* ERR_INTERNAL: it is not one of ours. Nothing is left to finish then. */
enum err batch_read(const struct document *document, struct batch *batch);

/* Loads a batch of the call's environment; its texts are its own. ERR_NOT_FOUND. */
struct batch_load {
    struct store_load load;
    struct batch batch; /* out; the caller's to finish */
    void (*done)(struct batch_load *load, enum err status);
};
void batch_load_begin(struct api_call *call, struct slice id, struct batch_load *load,
                      void (*done)(struct batch_load *load, enum err status));

/* Every run of it has ended, or none could be made. */
bool batch_has_ended(const struct batch *batch, const struct environment *env);

/* How many of its runs have not ended. */
size_t batch_count_unfinished(const struct batch *batch, const struct environment *env);

/* The id of one of its runs that have not ended, each as likely as the others; NULL: none. */
const char *batch_draw_unfinished(const struct batch *batch, const struct environment *env);

/* PENDING, COMPLETED, PARTIAL_FAILED or ABORTED. */
const char *batch_status(const struct batch *batch, const struct environment *env);
