/* waitpoint.h - a waitpoint that has a document: a token, or a time to wait for.
 *
 * A token is completed by a request, or by a record of an input stream. A time has a
 * document only if it has an idempotency key. */
#pragma once

#include "runcast/store.h"

struct waitpoint {
    char id[ID_MAX];                  /* "waitpoint_…" */
    uint32_t version;                 /* of the document; 0: not written yet */
    bool is_time;                     /* until is the end of the wait, not a timeout */
    int64_t created_at, completed_at; /* Unix ms; 0: pending */
    int64_t until;                    /* Unix ms; 0: no timeout */
    int64_t key_expires_at;           /* Unix ms */
    struct bytes *key;                /* idempotency key as given; NULL: none */
    /* The value that completed it: a JSON string, as it is sent; NULL: none. */
    struct bytes *output;
    struct bytes *output_type; /* NULL: application/json */
    struct tag_list *tags;     /* NULL: none */
    /* For a token completed by a record of this input; NULL: none. */
    struct bytes *run, *stream;
    /* How many records come before the first that completes it. */
    int64_t from;
};

void waitpoint_finish(struct waitpoint *waitpoint);

void waitpoint_set_output(struct waitpoint *waitpoint, struct slice text);

/* Returns the change that writes the document. The document becomes stale when the
 * waitpoint ends. A pending one without a timeout is stale from its creation, so retention
 * also removes tokens that are never completed, unless a run waits for them. */
struct change waitpoint_change(const struct waitpoint *waitpoint, uint32_t env);

/* Returns ERR_INTERNAL if it is not one of our documents; waitpoint_finish is then
 * unnecessary. */
enum err waitpoint_read(const struct document *document, struct waitpoint *waitpoint);

/* Reads everything except the output, which may be large. */
enum err waitpoint_read_head(const struct document *document, struct waitpoint *waitpoint);

/* Also returns true for a document that cannot be read, because nothing will complete
 * it. */
bool waitpoint_is_completed(const struct document *document);

/* Returns true if it was completed, or its time is up. */
static inline bool waitpoint_is_over(const struct waitpoint *waitpoint, int64_t now_ms)
{
    return waitpoint->completed_at || (waitpoint->until && waitpoint->until <= now_ms);
}
