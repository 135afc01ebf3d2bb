/* waitpoint.h - a waitpoint with a document of its own: a token that somebody completes, or
 * a time that is remembered under an idempotency key. */
#pragma once

#include "runcast/store.h"

struct waitpoint {
    char id[ID_MAX];                  /* "waitpoint_…" */
    uint32_t version;                 /* of the document; 0: not written yet */
    bool is_time;                     /* until is the time to wait for, not a timeout */
    int64_t created_at, completed_at; /* Unix ms; 0: pending */
    int64_t until;                    /* Unix ms; 0: no timeout */
    int64_t key_expires_at;           /* Unix ms */
    struct bytes *key;                /* of idempotency, as given; NULL: none */
    struct bytes *output; /* what completed it: a JSON string, as it is sent; NULL: none */
    struct bytes *output_type;  /* NULL: application/json */
    struct tag_list *tags;      /* NULL: none */
    struct bytes *run, *stream; /* of the input whose record completes it; NULL: none */
    int64_t from;               /* the first such record: how many came before it */
};

void waitpoint_finish(struct waitpoint *waitpoint);

void waitpoint_set_output(struct waitpoint *waitpoint, struct slice text);

/* The change that writes the document. It is stale since the waitpoint is over; one that has no
 * timeout either, since it was made: so retention also takes what nobody ever completes, unless
 * a run waits for it. */
struct change waitpoint_change(const struct waitpoint *waitpoint, uint32_t env);

/* ERR_INTERNAL: it is not one of ours. Nothing is left to finish then. */
enum err waitpoint_read(const struct document *document, struct waitpoint *waitpoint);

/* Reads all but the output, however large that is. */
enum err waitpoint_read_head(const struct document *document, struct waitpoint *waitpoint);

/* True also of a document that cannot be read: nothing will complete it. */
bool waitpoint_is_completed(const struct document *document);

/* Completed, or its time has come. */
static inline bool waitpoint_is_over(const struct waitpoint *waitpoint, int64_t now_ms)
{
    return waitpoint->completed_at || (waitpoint->until && waitpoint->until <= now_ms);
}
