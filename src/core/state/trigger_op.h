/* trigger_op.h - an operation that creates runs (trigger_begin). */
#pragma once

#include "core/live/run_read.h"
#include "core/model/debounce.h"
#include "core/state/state.h"

/* One run to be created. The caller fills in the options of run: task, queue (NULL: the
 * task's), concurrency_key, worker_version (locked), ttl, region, parent, root, depth,
 * tags, packets, machine, priority_ms, max_*, delayed_until, is_test, is_replay,
 * idempotency_key, … The engine adds id, times, status. */
struct trigger {
    struct run run;           /* its texts are the operation's until done */
    int64_t key_expires_at;   /* of run.idempotency_key */
    bool no_default_ttl;      /* ttl 0 was requested */
    char id[ID_MAX];          /* out: the run, new or found */
    struct debounce debounce; /* the mark of its key is in run.rare->waits */
    bool cached;              /* out: an idempotency key led to an older run */
    /* Out: its debounce key, or its key in a singleton queue, led to an older run, or to an
     * earlier item's. */
    bool joined;

    /* The engine's. */
    struct trigger *original; /* earlier item with the same idempotency key; NULL: none */
    struct trigger *leader;   /* earlier item with the same debounce key, which creates the
                               * run; NULL: none */
    char pushes[RUN_ID_MAX];  /* the delayed run that has its debounce key; "": none */
    bool replaces;            /* that run is too old to push: a new one gets the key */
    struct change *change;    /* in the commit, of a run that is created */
    /* The strategy of its queue. If it is set, leader and pushes are about the run that holds its
     * concurrencyKey (singletons.h). */
    enum singleton singleton;
    /* Limits and gates of the run (limits_count_set). If the caller has counted them, the
     * operation discounts them at its end. */
    struct slot_group *counted;
};

struct trigger_op {
    struct engine *engine;
    struct environment *env;
    struct trigger *items;
    size_t count;
    struct bytes *request_key;    /* deduplicates HTTP retries for 24 h; NULL: none */
    struct bytes *one_time_token; /* hash; NULL: none */
    int64_t token_expires_at;
    struct bytes *batch_key; /* idempotency of a batch; NULL: none */
    int64_t batch_key_expires_at;
    /* Written along with the runs: the batch or schedule that they come from; NULL: none.
     * version: the expected one. */
    struct document *batch;
    char batch_id[ID_MAX];    /* owner of request and batch keys; "": the first run */
    bool packets_as_they_are; /* packets named by payloads need not be stored; if false, a
                                 missing one fails all with ERR_INVALID */
    /* Called before each attempt to commit, when ids are known: completes batch->body. */
    void (*prepare)(struct trigger_op *op);
    void (*done)(struct trigger_op *op, enum err status);

    /* Out. */
    bool repeated;     /* the request key was known: items[0].id or batch_id
                          is that of the first response */
    bool batch_cached; /* the batch key was known: batch_id is the old batch */
    bool token_used;   /* refused: the one-time token was already used */
    uint64_t seq;      /* of the last change */
    struct failure why;

    /* The engine's. */
    struct store_commit commit;
    struct change *changes;
    struct claim *claims;
    size_t *claim_items; /* index of the item of each claim; SIZE_MAX: of all */
    size_t applied;      /* how many changes were applied */
    struct run_read read;
    size_t resolving;  /* index of the claim whose owner is being read */
    bool is_debounced; /* one of its items is */
    bool is_singleton; /* one of its items is or was for a singleton queue */
    struct list link;  // engine::triggers
    /* Another operation makes a run for a key that it needs. */
    struct list wants_key; // debounce_key::line, singleton_key::line, singleton_queue::line
    void (*retry)(struct trigger_op *op); /* called when that has ended */
};
