/* bulk_work.h - what the files of the work share: the turns (bulk_work.c), and what is
 * done with a slice of runs (bulk_cancel.c, bulk_replay.c). */
#pragma once

#include "api/bulk/bulk.h"
#include "api/runs/filter_words.h"
#include "base/slots.h"
#include "core/engine/run_commands.h"

struct bulks {
    struct engine *engine;
    struct slots queues; /* of struct bulk_queue, by number of the environment */
    bool stopped, destroyed;
    unsigned busy; /* queues with something on its way */
};

struct bulk_cancel {
    struct cancel cancel;
    struct bulk_queue *queue;
};

/* One environment's: a slice of one action at a time. */
struct bulk_queue {
    struct bulks *bulks;
    struct environment *env;
    struct ranking all;
    struct list pending;    // bulk_action::pending; in the order of their turns
    uint32_t pending_count; /* with those that are being written for the first time */
    bool busy;
    struct deferred turn;
    struct timer retry;

    /* The slice. */
    struct bulk_action *now;
    struct bulk_progress next; /* of it, once the slice is done */
    struct filter_words *filter;
    struct store_list list;
    char ids[BULK_SLICE][ID_MAX];
    size_t count;
    struct document_write write;

    char reason[80];
    struct bulk_cancel cancels[BULK_SLICE];
    size_t waiting;

    struct trigger items[BULK_SLICE];
    size_t item_count, at, bytes;
    struct run_read read;
    struct trigger_op trigger;
    struct document document;
};

/* Each ends with bulk_write_progress, bulk_slice_written or bulk_try_again. */
void bulk_cancel_slice(struct bulk_queue *queue);
void bulk_replay_slice(struct bulk_queue *queue);

/* The slice is done but for the document. */
void bulk_write_progress(struct bulk_queue *queue);

/* The slice is done, and its document is written. */
void bulk_slice_written(struct bulk_queue *queue);

/* The store could not: the same slice again, a second later. */
void bulk_try_again(struct bulk_queue *queue);
