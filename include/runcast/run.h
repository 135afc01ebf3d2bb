/* run.h - a run, its statuses, and functions on runs as values.
 *
 * A struct run is a value: facts that the store keeps and a client may see. A copy takes
 * references to the texts; the texts themselves are shared and never change. State that
 * exists only in memory (timers, listeners, its place in a queue) is kept elsewhere.
 *
 * Times are Unix milliseconds, 0: unset. Texts are NULL when unset. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/text.h"

/* Stored and compared as numbers: append, never reorder. */
enum run_status {
    RUN_DELAYED,
    RUN_PENDING_VERSION,
    RUN_QUEUED,
    RUN_DEQUEUED,
    RUN_EXECUTING,
    RUN_RETRYING, /* an attempt failed, the next one is scheduled: REATTEMPTING */
    RUN_WAITING,  /* blocked by a wait: FROZEN */
    RUN_CANCELED, /* the first final status */
    RUN_COMPLETED,
    RUN_FAILED,
    RUN_INTERRUPTED,
    RUN_CRASHED,
    RUN_SYSTEM_FAILURE,
    RUN_EXPIRED,
    RUN_TIMED_OUT,
    RUN_STATUS_COUNT
};

/* The state of a run as workers see it: the execution status of its newest snapshot. */
enum run_execution {
    EXECUTION_CREATED,
    EXECUTION_DELAYED,
    EXECUTION_QUEUED,
    EXECUTION_PENDING_EXECUTING,
    EXECUTION_EXECUTING,
    EXECUTION_WITH_WAITPOINTS,
    EXECUTION_PENDING_CANCEL,
    EXECUTION_FINISHED,
    EXECUTION_COUNT
};

/* Three vocabularies for one status. */
enum vocabulary {
    VOCABULARY_A,        /* no x-trigger-api-version: SDK 3.x, curl */
    VOCABULARY_B,        /* 2025-07-16: SDK 4.x */
    VOCABULARY_INTERNAL, /* run.status in responses to workers; raw realtime columns */
};

enum machine {
    MACHINE_MICRO,
    MACHINE_SMALL_1X, /* the default */
    MACHINE_SMALL_2X,
    MACHINE_MEDIUM_1X,
    MACHINE_MEDIUM_2X,
    MACHINE_LARGE_1X,
    MACHINE_LARGE_2X,
    MACHINE_COUNT
};

enum {
    RUN_TAGS_MAX = 10,
    RUN_TAG_CHARS_MAX = 128,
    RUN_ATTEMPTS_MAX = 250,
    RUN_METADATA_MAX = 262144, /* bytes */
    RUN_STREAMS_MAX = 100,
    RUN_STREAM_KEY_MAX = 256, /* bytes */
};

/* Immutable; counted and shared like bytes. */
struct tag_list {
    uint32_t refs;
    uint32_t count;
    struct bytes *names[]; /* as given, in order, with duplicates */
};

/* Fields that few runs have set. Shared by copies of a run; never changed while shared. */
struct run_rare {
    uint32_t refs;
    int32_t priority_ms;
    int64_t delayed_until; /* kept after the delay */
    int64_t expired_at;
    struct bytes *concurrency_key;
    struct bytes *limits; /* JSON array of names: those of which it needs a slot, too */
    struct bytes *ttl;    /* as written by the client: "1h30m" */
    struct bytes *region;
    struct bytes *parent, *root;     /* ids */
    struct bytes *schedule;          /* "sched_…" */
    struct bytes *bulk;              /* "bulk_…": the action that made or canceled it */
    struct bytes *idempotency_key;   /* the hash from which the claim is made */
    struct bytes *idempotency_shown; /* what retrieve shows */
    struct bytes *waits;             /* JSON array of its waits, or a debounce_mark */
    struct bytes *payload_type, *output_type; /* NULL: application/json */
    struct bytes *streams;                    /* JSON array of the keys of its streams */
    struct bytes *metadata_request;           /* id of the request that changed it last */
    struct bytes *external_deployment; /* the trigger's name for the deployment to use */
};

/* A run. Memory may hold a million of them, so the struct has no padding, and fields that
 * few runs use are in the rare part. */
struct run {
    char id[RUN_ID_MAX]; /* "run_" and 21 characters, terminated */
    uint32_t number;     /* counts from 1 per environment and task; set by the store */
    uint32_t version;    /* counts changes from 1; set by the store */
    uint32_t snapshot;   /* counts snapshots from 1; see run_snapshot_id */

    uint8_t status;    /* enum run_status */
    uint8_t execution; /* enum run_execution */
    uint8_t machine;   /* enum machine */
    bool is_test : 1;
    bool is_replay : 1;
    bool resume_parent : 1; /* the parent waits for this run */
    bool from_batch : 1;
    bool key_from_user : 1; /* idempotency_shown is the user's own key */
    bool by_token : 1;      /* its last lease came from a worker token, not a secret key */
    uint32_t usage_ms;      /* sum of all attempts */

    /* Positions in the environment's order of changes; set by the store. */
    uint64_t rev;       /* of the last change */
    uint64_t whole_rev; /* created, tag added, payload replaced */
    uint64_t metadata_rev;
    uint64_t output_rev; /* output or error */

    uint16_t attempt; /* of the newest attempt; 0: none started yet */
    uint16_t depth;
    uint16_t max_attempts;     /* 0: the task's limit */
    uint16_t dequeue_failures; /* consecutive leases that expired */
    uint32_t batch_index;
    uint32_t max_duration_s; /* 0: the task's limit */

    int64_t created_at, updated_at;
    int64_t queued_at;  /* entered its queue; its ttl starts here */
    int64_t started_at; /* first dequeue */
    int64_t attempt_at; /* start of the newest attempt */
    int64_t finished_at;
    int64_t queue_position; /* order in its queue: queued_at minus priority */
    int64_t due_at;         /* when its status must end: delay, ttl, lease, pause before the
                             * next attempt, wait, confirmation of a cancel; 0: no such
                             * time. Heartbeats are not stored */
    double cost_cents;      /* of usage_ms, at the prices of that time */
    double base_cost_cents; /* price of starting the run; price.h */

    struct bytes *task;
    struct bytes *queue;          /* "task/<task>" or a custom name */
    struct bytes *worker_version; /* set by the first dequeue, or locked by the trigger */
    struct bytes *batch;          /* "batch_…" */
    struct bytes *worker_request; /* id of the last start or complete applied */
    struct tag_list *tags;
    struct run_rare *rare; /* NULL: all unset; use run_rare, run_rare_edit */

    /* The packets. The content types of payload and output are in the rare part. */
    struct bytes *payload;
    struct bytes *output;
    struct bytes *metadata;      /* JSON object */
    struct bytes *metadata_seed; /* as triggered; a replay gets it */
    struct bytes *error; /* JSON object with a type: BUILT_IN_ERROR, CUSTOM_ERROR, … */
};

/* ---- values ---- */

extern const struct run_rare run_rare_none;

/* Returns the rare part for reading; never NULL. */
static inline const struct run_rare *run_rare(const struct run *run)
{
    return run->rare ? run->rare : &run_rare_none;
}

/* Returns the rare part for writing: made if missing, copied if another run shares it. Do
 * not use a pointer that run_rare returned before. */
struct run_rare *run_rare_edit(struct run *run);

/* For tables that list fields by offset: offsets from sizeof(struct run) on are fields of
 * the rare part. */
#define rare_offset(field) (sizeof(struct run) + offsetof(struct run_rare, field))

static inline const void *run_field(const struct run *run, size_t offset)
{
    return offset < sizeof(struct run)
               ? (const char *)run + offset
               : (const char *)run_rare(run) + (offset - sizeof(struct run));
}

/* Copies from into to, taking references. Does not release what to held before. */
void run_copy(struct run *to, const struct run *from);

/* Releases the run's texts. Accepts a zeroed run. */
void run_finish(struct run *run);

/* Replaces recurring texts and tag lists with shared ones. Loop thread only. A tag list
 * that others also hold is left as it is. */
void run_share_names(struct run *run);

/* Returns the heap bytes of the packets: payload, output, metadata, its seed, and error. */
size_t run_packet_bytes(const struct run *run);

/* Returns the bytes of all texts, packets included. A text that several runs share counts
 * for each of them, as a database stores it. */
size_t run_text_bytes(const struct run *run);
/* Returns the bytes of the tags, each prefixed with its length: "3:one,3:two,". */
size_t run_tag_bytes(const struct run *run);

/* Returns NULL if count is 0. May be called on any thread, like bytes_create. */
struct tag_list *tag_list_create(const struct slice *names, size_t count);
struct tag_list *tag_list_ref(struct tag_list *tags);
void tag_list_unref(struct tag_list *tags);
/* Empties the cache of run_share_names. Call it together with bytes_forget_shared. */
void tag_list_forget_shared(void);

/* The streams that the run lists (run_rare::streams). */
bool run_has_stream(const struct run *run, struct slice key);
size_t run_count_streams(const struct run *run);

/* ---- names ---- */

const char *run_status_name(enum run_status status, enum vocabulary vocabulary);

/* Returns the statuses that the word stands for, as a bit set; 0: unknown word. Searches
 * the caller's vocabulary first, then the two public ones. */
unsigned run_statuses_named(struct slice word, enum vocabulary vocabulary);

/* The number of runs with one word as their status. */
struct run_word_count {
    const char *word;
    uint64_t count;
};

/* Turns counts by status (RUN_STATUS_COUNT of them) into counts by word. Statuses that
 * share a word are added up; words without runs are left out. Returns the number of
 * words. */
size_t run_count_words(enum vocabulary vocabulary, const uint64_t *counts,
                       struct run_word_count words[RUN_STATUS_COUNT]);

const char *run_execution_name(enum run_execution execution);
const char *machine_name(enum machine machine);
enum err machine_from_name(struct slice name, enum machine *machine);
double machine_cpu(enum machine machine);
double machine_memory_gb(enum machine machine);

static inline bool run_is_final(const struct run *run)
{
    return run->status >= RUN_CANCELED;
}

/* Returns true if a run is final and awaits no worker's confirmation: it no longer
 * changes. */
static inline bool run_is_settled(const struct run *run)
{
    return run_is_final(run) && run->execution == EXECUTION_FINISHED;
}

/* Returns when a queued run entered its queue, for its first or next attempt; Unix ms. */
static inline int64_t run_in_queue_since(const struct run *run)
{
    if (run->status != RUN_RETRYING && !run->started_at)
        return run->queued_at;
    return run->due_at ? run->due_at : run->updated_at;
}

/* Writes "snapshot_<run>-n<number>", the number in ten digits. Every transition has its own
 * id, and a worker must name the newest. The controller of a deployed run compares these
 * ids as texts and takes the greater one to be newer; the "n" makes new ids greater than
 * ids of the old form "snapshot_<run>-9". */
void run_snapshot_id(const struct run *run, char out[64]);
