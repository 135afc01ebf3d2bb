/* bulk_work.h - shared by bulk_work.c (turns), bulk_cancel.c and bulk_replay.c (slices). */
#pragma once

#include "api/bulk/bulk.h"
#include "api/runs/filter_words.h"
#include "base/slots.h"
#include "core/engine/run_commands.h"

struct bulks {
    struct engine *engine;
    struct slots queues; /* struct bulk_queue, by number of the environment */
    bool stopped, destroyed;
    unsigned busy; /* queues that have a turn, a retry or an operation pending */
};

struct bulk_cancel {
    struct cancel cancel;
    struct bulk_queue *queue;
};

/* The actions of one environment: one slice of one action at a time. */
struct bulk_queue {
    struct bulks *bulks;
    struct environment *env;
    struct ranking all;
    struct list pending;    // bulk_action::pending; in the order of their turns
    uint32_t pending_count; /* including those being written for the first time */
    bool busy;
    struct deferred turn;
    struct timer retry;

    /* The current slice. */
    struct bulk_action *now;
    struct bulk_progress next; /* its progress once the slice is done */
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

/* Process a slice. Each ends with bulk_write_progress, bulk_slice_written or
 * bulk_try_again. */
void bulk_cancel_slice(struct bulk_queue *queue);
void bulk_replay_slice(struct bulk_queue *queue);

/* Writes the progress of a finished slice into the document. */
void bulk_write_progress(struct bulk_queue *queue);

/* Continues after a finished slice whose document is already written. */
void bulk_slice_written(struct bulk_queue *queue);

/* Repeats the slice after RETRY_MS, because the store failed. */
void bulk_try_again(struct bulk_queue *queue);
