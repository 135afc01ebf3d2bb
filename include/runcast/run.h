/* run.h - a run, its statuses, a change to it: the words of everything else.
 *
 * A struct run is a value: facts that the store keeps and a client may see. Copying it
 * takes references to its texts; the texts themselves are shared and never change. What
 * memory adds to a run (timers, listeners, a place in a queue) is not in here.
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
    RUN_RETRYING, /* an attempt failed, the next one is due: REATTEMPTING */
    RUN_WAITING,  /* blocked by a wait: FROZEN */
    RUN_CANCELED, /* the first final one */
    RUN_COMPLETED,
    RUN_FAILED,
    RUN_INTERRUPTED,
    RUN_CRASHED,
    RUN_SYSTEM_FAILURE,
    RUN_EXPIRED,
    RUN_TIMED_OUT,
    RUN_STATUS_COUNT
};

/* What a run does, as workers see it: the execution status of its newest snapshot. */
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
    VOCABULARY_INTERNAL, /* run.status in answers to workers, raw realtime columns */
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

/* Immutable, shared like bytes. */
struct tag_list {
    uint32_t refs;
    uint32_t count;
    struct bytes *names[]; /* as given, in order; duplicates stay */
};

/* Fields that few runs have set. Shared by the copies of a run, and not changed while shared. */
struct run_rare {
    uint32_t refs;
    int32_t priority_ms;
    int64_t delayed_until; /* kept after the delay */
    int64_t expired_at;
    struct bytes *concurrency_key;
    struct bytes *ttl; /* as shown: "1h30m" */
    struct bytes *region;
    struct bytes *parent, *root;     /* ids */
    struct bytes *schedule;          /* "sched_…" */
    struct bytes *bulk;              /* "bulk_…": the action that made or canceled it */
    struct bytes *idempotency_key;   /* the hash that the claim is made of */
    struct bytes *idempotency_shown; /* what retrieve shows */
    struct bytes *waits;             /* JSON array of the waitpoints of this snapshot */
    struct bytes *payload_type, *output_type; /* NULL: application/json */
    struct bytes *streams;                    /* JSON array of the keys of its streams */
    struct bytes *metadata_request;    /* id of the last one that changed its metadata */
    struct bytes *external_deployment; /* the trigger's own name of the deployment that is
                                          to execute it */
};

/* A million runs are in memory: so a run has no holes, and what few have is in its rare part. */
struct run {
    char id[RUN_ID_MAX]; /* "run_" and 21 characters, terminated */
    uint32_t number;     /* counts from 1 per environment and task; the store's */
    uint32_t version;    /* counts changes from 1; the store's */
    uint32_t snapshot;   /* counts snapshots from 1; run_snapshot_id */

    uint8_t status;    /* enum run_status */
    uint8_t execution; /* enum run_execution */
    uint8_t machine;   /* enum machine */
    bool is_test : 1;
    bool is_replay : 1;
    bool resume_parent : 1; /* the parent waits for this one */
    bool from_batch : 1;
    bool key_from_user : 1; /* idempotency_shown is the user's own key */
    uint32_t usage_ms;      /* sum over the attempts */

    /* Positions in the environment's order of changes; the store's. */
    uint64_t rev;       /* of the last change */
    uint64_t whole_rev; /* created, tag gained, payload replaced */
    uint64_t metadata_rev;
    uint64_t output_rev; /* output or error */

    uint16_t attempt; /* of the newest attempt; 0: none started yet */
    uint16_t depth;
    uint16_t max_attempts;     /* 0: the task's */
    uint16_t dequeue_failures; /* in a row: leases that ran out */
    uint32_t batch_index;
    uint32_t max_duration_s; /* 0: the task's */

    int64_t created_at, updated_at;
    int64_t queued_at;  /* entered its queue: where its ttl starts */
    int64_t started_at; /* first dequeue */
    int64_t attempt_at; /* start of the newest attempt */
    int64_t finished_at;
    int64_t queue_position; /* order in its queue: queued_at less priority */
    int64_t due_at;         /* what its status waits for at most: delay, ttl, lease,
                               heartbeat, retry, wait; 0: nothing. */
    double cost_cents;      /* of the ms in usage_ms, at the prices of their time */
    double base_cost_cents; /* of having started; price.h */

    struct bytes *task;
    struct bytes *queue;          /* "task/<task>" or a custom name */
    struct bytes *worker_version; /* bound at the first dequeue, or locked by the trigger */
    struct bytes *batch;          /* "batch_…" */
    struct bytes *worker_request; /* id of the last start or complete that was applied */
    struct tag_list *tags;
    struct run_rare *rare; /* NULL: nothing in it is set; run_rare, run_rare_edit */

    /* The packets; the types of the first two are in the rare part. */
    struct bytes *payload;
    struct bytes *output;
    struct bytes *metadata;      /* JSON object */
    struct bytes *metadata_seed; /* as triggered: what a replay gets */
    struct bytes *error; /* JSON object with a type: BUILT_IN_ERROR, CUSTOM_ERROR, … */
};

/* ---- values ---- */

extern const struct run_rare run_rare_none;

/* The rare part, to be read; never NULL. */
static inline const struct run_rare *run_rare(const struct run *run)
{
    return run->rare ? run->rare : &run_rare_none;
}

/* The rare part, to be written to: made if there is none, copied if another run has it too.
 * What run_rare has returned before is not the run's any more. */
struct run_rare *run_rare_edit(struct run *run);

/* For tables of fields: those of the rare part go on behind offsetof(struct run, …). */
#define rare_offset(field) (sizeof(struct run) + offsetof(struct run_rare, field))

static inline const void *run_field(const struct run *run, size_t offset)
{
    return offset < sizeof(struct run)
               ? (const char *)run + offset
               : (const char *)run_rare(run) + (offset - sizeof(struct run));
}

/* to = from, with references of its own. to holds nothing before. */
void run_copy(struct run *to, const struct run *from);

/* Gives back the texts; a zeroed run is fine. */
void run_finish(struct run *run);

/* Exchanges texts and lists of tags that recur for shared ones; loop thread, and before
 * others hold the run's list. */
void run_share_names(struct run *run);

/* Heap bytes of its packets: payload, output, metadata and seed, error. */
size_t run_packet_bytes(const struct run *run);

/* Bytes of all its texts, packets included, as a database keeps them: one by one. */
size_t run_text_bytes(const struct run *run);
/* Bytes of its tags, each with its length before it: "3:one,3:two,". */
size_t run_tag_bytes(const struct run *run);

/* NULL for no names. May be called on any thread, as bytes_create. */
struct tag_list *tag_list_create(const struct slice *names, size_t count);
struct tag_list *tag_list_ref(struct tag_list *tags);
void tag_list_unref(struct tag_list *tags);
/* Empties the cache of lists that run_share_names keeps; with bytes_forget_shared. */
void tag_list_forget_shared(void);

/* The streams that the run lists (run_rare::streams). */
bool run_has_stream(const struct run *run, struct slice key);
size_t run_count_streams(const struct run *run);

/* ---- names ---- */

const char *run_status_name(enum run_status status, enum vocabulary vocabulary);

/* Every stored status that the word of either vocabulary stands for, as a bit set; words of
 * the caller's vocabulary first. 0: unknown word. */
unsigned run_statuses_named(struct slice word, enum vocabulary vocabulary);

/* How many runs there are of a word. */
struct run_word_count {
    const char *word;
    uint64_t count;
};

/* Counts by status (RUN_STATUS_COUNT of them) as counts by word: statuses that share one are
 * added up, words without runs are left out. Their number. */
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

/* Final, and no worker has to confirm it any more: nothing will change it by itself. */
static inline bool run_is_settled(const struct run *run)
{
    return run_is_final(run) && run->execution == EXECUTION_FINISHED;
}

/* When a queued run came into its queue, Unix ms: for its first attempt, or for the next one. */
static inline int64_t run_in_queue_since(const struct run *run)
{
    if (run->status != RUN_RETRYING && !run->started_at)
        return run->queued_at;
    return run->due_at ? run->due_at : run->updated_at;
}

/* "snapshot_<run>-n<number>", in ten digits: every transition has its own, and a worker must
 * name the newest. The controller of a deployed run takes the greater text for the newer
 * snapshot; so a new one is also greater than "snapshot_<run>-9", as they once were. */
void run_snapshot_id(const struct run *run, char out[64]);
