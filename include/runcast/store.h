/* store.h - the interface between the engine and a database.
 *
 * The store holds runs and documents. A document is anything that is not a run
 * (environment, key, batch, queue, worker version, packet, …): a body of bytes under a kind
 * and a name.
 *
 * A commit is all or nothing:
 *
 *   claims    unique keys taken or released, each with its owner and an expiry: idempotency
 *             keys, request ids, one-time tokens
 *   changes   new versions of runs and documents; each takes the next number (seq) of its
 *             environment, in the order in which commits succeed
 *
 * Each read has a kind: loading one run or document, a piece of a document, listing or
 * counting the runs that match a filter, walking along their changes, scanning documents.
 * Each kind is a struct that begins with struct store_read, and store_ops::read takes them
 * all:
 *
 *   op->list = (struct store_list){ .read = { READ_LIST, env, on_listed }, .limit = 10 };
 *   store->ops->read(store, &op->list.read);
 *
 *   static void on_listed(struct store_read *read, enum store_status status)
 *   {
 *       struct op *op = container_of(read, struct op, list.read);
 *
 * All requests follow one rule. The caller embeds the request in its own context, fills it
 * in, and leaves it alone until done is called: exactly once, on the loop thread, never
 * from inside the call that started the request. STORE_OK of a commit means that it is
 * synced to the disk.
 *
 * Several processes may share a database. Versions decide their races, and seq is stored
 * with the rows that it numbers. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/list.h"
#include "runcast/run.h"

struct store;
struct store_commit;
struct store_read;
struct store_file;

enum store_status {
    STORE_OK,
    STORE_LOST,     /* a version was not the expected one */
    STORE_TAKEN,    /* another owner has a claim: see claim.taken and claim.owner */
    STORE_MISSING,  /* a read found nothing; for a commit see MARK_PACKET */
    STORE_NO_SPACE, /* the disk is full; nothing was written */
    STORE_SLOW,     /* a read was stopped after 2 s: the filter matches too few runs */
    STORE_FAILED,   /* nothing was written, or the outcome is unknown: do not acknowledge */
    STORE_MOVED,    /* another gateway leads: forget the environment; do not acknowledge */
};

/* Returns the program's error code for the status. */
enum err err_of_store(enum store_status status);

/* ---- documents ---- */

/* Stored as numbers: append, never reorder. */
enum document_kind {
    DOC_ORGANIZATION,
    DOC_PROJECT,
    DOC_USER,
    DOC_ENVIRONMENT,
    DOC_KEY,
    DOC_TOKEN,
    DOC_BATCH,
    DOC_QUEUE,
    DOC_WORKER,
    DOC_WAITPOINT,
    DOC_SCHEDULE,
    DOC_VARIABLE,
    DOC_PACKET,
    DOC_BULK,
    DOC_WORKER_TOKEN,
    DOC_TRACE,   /* by run id; removed with the run, and so are its pieces */
    DOC_CURRENT, /* one per environment: which worker version is current */
    DOC_DEPLOYMENT,
    DOC_BUILD_VARIABLES, /* by deployment id; sealed; removed when the build has ended */
    DOC_TRACE_PIECE,     /* by run id, "/" and a number */
    DOC_ACTIVITY,        /* one per environment: its activity of the last hours */
    DOC_LIMIT,           /* by name of a concurrency limit: its settings */
    DOC_KINDS            /* the number of kinds; always the last */
};

/* The environment number of documents that belong to the whole installation. */
enum { ENV_INSTALLATION = 0 };

struct document {
    enum document_kind kind;
    uint32_t env;
    uint32_t version;   /* counts from 1; set by the store */
    struct bytes *name; /* unique per (env, kind) */
    struct bytes *body; /* NULL in a change: delete */
    int64_t stale_at;   /* of a waitpoint, in a change; Unix ms: later a purge may remove it
                         * unless an unfinished run waits for it; 0: never */
};

void document_finish(struct document *document);

/* ---- commits ---- */

enum change_kind { CHANGE_RUN, CHANGE_DOCUMENT };

/* Which packets of the run are rewritten, and which positions move. */
enum change_marks {
    MARK_WHOLE = 1 << 0,   /* whole_rev; tags are rewritten */
    MARK_PAYLOAD = 1 << 1, /* payload; with MARK_WHOLE */
    MARK_METADATA = 1 << 2,
    MARK_OUTPUT = 1 << 3, /* output and error */
    MARK_KEY = 1 << 4,    /* only idempotency_key was cleared */
    MARK_PACKET =
        1 << 5, /* new runs: payload names a packet; STORE_MISSING if that does not exist */
};

struct change {
    enum change_kind kind;
    uint32_t env;
    uint32_t expected; /* version before the change; 0: does not exist yet */
    unsigned marks; /* runs: enum change_marks; a new run has WHOLE | PAYLOAD | METADATA */
    uint64_t seq;   /* set by the driver */
    /* Set by the caller. The driver fills in run.version, the four revs, run.number of a
     * new run, and document.version: all but run.number by change_number, once the seq is
     * known. */
    struct run run;
    struct document document;
};

/* Releases the run's and the document's texts. */
void change_finish(struct change *change);

/* Sets the positions and versions of the change; the driver calls it when seq is known. */
void change_number(struct change *change, uint64_t seq);

enum claim_kind {
    CLAIM_IDEMPOTENCY,
    CLAIM_REQUEST,
    CLAIM_ONE_TIME_TOKEN,
    CLAIM_BATCH,
    CLAIM_ATTEMPT,
    CLAIM_WAITPOINT,
    CLAIM_RATE /* how many runs may start per period: expires when that is all again */
};

/* The owner of a claim may take it again. Two claims of one commit on the same key are
 * tried in their order; if their owners differ, the second one finds the key taken by the
 * first.
 *
 * A brief claim expires within an hour or so, and all claims of its key are brief. A driver
 * may use up to 32 bytes of memory for each, and remove one that expires in more than two
 * hours: it was taken before the clock was set back. Scans omit them, and a purge leaves them
 * until they expire. */
struct claim {
    enum claim_kind kind;
    uint32_t env;
    struct bytes *key;       /* borrowed until done */
    char owner[ID_MAX];      /* in: the new owner; out, if taken: the present owner */
    int64_t expires_at;      /* Unix ms: from then on the claim is free; 0: never */
    char instead_of[ID_MAX]; /* replace this owner; "": none */
    bool release;            /* release it if owner has it, instead of taking it */
    bool brief;              /* see above; neither released nor taken from another owner */
    bool taken;              /* set by the driver: another owner has it */
};

/* First byte of the `task` in the key of a CLAIM_REQUEST that does not trigger a task. No
 * task id contains this byte, because ids are UTF-8. */
#define CLAIM_NO_TASK "\xFF"

/* Returns the key of a CLAIM_IDEMPOTENCY. It combines the idempotency key with the task, or
 * with another scope that has its own keys. */
struct bytes *idempotency_claim_key(struct slice task, struct slice key);

typedef void store_done_fn(struct store_commit *req, enum store_status status);
typedef bool store_apply_fn(struct store_commit *req);

struct store_commit {
    struct change *changes;
    size_t change_count;
    struct claim *claims; /* all are tried before STORE_TAKEN is reported */
    size_t claim_count;
    int64_t now_ms; /* Unix; compared with expires_at */
    store_done_fn *done;
    /* Called before done if the commit succeeded. Applies a part of the changes and returns
     * true if more is left. Called once a turn until nothing is left; meanwhile, later
     * commits of the same environment are not reported. NULL: done applies everything. */
    store_apply_fn *apply;

    enum store_status status; /* set by the driver */
    int64_t begun_us;         /* set by the driver; monotonic, as below */
    int64_t synced_us;        /* set by the driver: when it was on the disk */
    size_t weight;            /* set by the driver: the cost of writing it, in changes */
    struct list link;         // of commit_turns.c's queues; a driver's lists
};

/* ---- reads ---- */

/* Names the struct that begins with store_read. Zero is invalid: a driver crashes on it. */
enum store_read_kind {
    READ_LOAD = 1, /* struct store_load */
    READ_PIECE,
    READ_LIST,
    READ_COUNT,
    READ_WALK,
    READ_SCAN,
};

/* The head of every read below. The caller begins a read with zeroed results, and owns
 * those that the read delivers. A failed read delivers nothing that must be freed. */
struct store_read {
    enum store_read_kind kind;
    uint32_t env;
    void (*done)(struct store_read *read, enum store_status status);
};

/* Loads one run, whole, or one document by its name in the environment. A run that is not
 * there is searched for in the other environments, in their order; read.env is then set to
 * the environment that contains it. */
struct store_load {
    struct store_read read;
    const uint32_t *others; /* also searched for a run; borrowed until done */
    size_t other_count;
    bool is_document;
    enum document_kind kind;
    struct bytes *name; /* borrowed until done: run id or document name */
    bool is_for_memory; /* all clients wait for it, as the memory that serves them does */

    struct run run;
    struct document document;
};

/* Reads a piece of a document's body. Each piece is a separate read; nothing stays open
 * between two of them. seq shows whether the document was written, or deleted and created
 * again, in between. */
struct store_piece {
    struct store_read read;
    enum document_kind kind;
    struct bytes *name; /* borrowed until done */
    uint64_t seq; /* of the change that wrote the body; in: STORE_LOST unless it is this
                   * one; 0: any; out: which */
    size_t offset, limit; /* bytes; the piece is shorter where the body ends */
    bool last;            /* the last bytes of the body instead, at most limit */

    struct bytes *piece;
    size_t total; /* bytes of the whole body */
};

/* All conditions that are set must hold; the values of a list are alternatives. Newest id
 * first. Ids come from text_make_id, so their time is within an hour of created_at, and a
 * search may stop where the range created_from to created_to ends. */
struct run_filter {
    unsigned statuses;                /* bit set; 0: any */
    unsigned machines;                /* bit set; 0: any */
    int is_test;                      /* -1: any */
    int64_t created_from, created_to; /* Unix ms, inclusive; 0: open */
    struct slice *tasks, *versions, *tags, *queues, *regions; /* the caller's arrays */
    size_t task_count, version_count, tag_count, queue_count, region_count;
    bool every_tag;                             /* all of the tags instead of any */
    struct slice batch, schedule, bulk, parent; /* absent: any */
    struct slice packet; /* stored separately as its payload or output; absent: any */
    bool nothing;        /* matches no run (an unknown error group) */
};

/* The parts of each run that a list delivers besides its facts. */
enum store_parts { STORE_METADATA, STORE_FACTS_ALONE, STORE_PACKETS };

struct store_list {
    struct store_read read;
    atomic_bool abandoned;    /* by store_read_abandon */
    struct run_filter filter; /* borrowed until done */
    char after[ID_MAX];       /* older than this id; "": from the newest */
    char before[ID_MAX];      /* newer than this id; wins over after */
    unsigned limit;
    size_t byte_limit; /* the page ends after the run that exceeds it; 0: no limit */
    enum store_parts parts;

    struct run *runs; /* newest first; mem_alloc'd */
    size_t count;
    bool more;    /* there are more, in the direction of travel */
    uint64_t seq; /* of the environment's last change that this read includes */
};

/* Counts the runs that match a filter, by status. */
struct store_count {
    struct store_read read;
    atomic_bool abandoned;    /* by store_read_abandon */
    struct run_filter filter; /* borrowed until done */

    uint64_t counts[RUN_STATUS_COUNT];
    uint64_t seq; /* of the environment's last change that this read includes */
};

/* Settled: run_is_settled. Unfinished: all others, also cancels to be confirmed. */
enum walk_kind { WALK_ALL, WALK_TAG, WALK_BATCH, WALK_UNFINISHED, WALK_SETTLED };

/* Walks over runs in the order of their last change: after < rev <= up_to. */
struct store_walk {
    struct store_read read;
    enum walk_kind kind;
    struct bytes *name; /* of the tag or batch; borrowed until done */
    uint64_t after, up_to;
    int64_t created_from; /* 0: any */
    bool newest_first;
    bool takes_its_time; /* no time limit, so never STORE_SLOW; for a start, which needs
                          * every run and reads all pages with this one request */
    bool is_for_memory;  /* as in store_load */
    unsigned limit;
    size_t byte_limit; /* stops after the run that exceeds it */

    struct run *runs; /* whole; mem_alloc'd */
    size_t count;
    bool more;    /* there are more; with takes_its_time: there may be more */
    uint64_t seq; /* of the environment's last change that this read includes */
};

/* Scans the documents of a kind, by name. read.env may be ENV_EVERY for all environments.
 * With a limit it reads a page of one environment, without one everything.
 *
 * of_claims: scans the claims of claim_kind instead, without a limit. Each is a document:
 * its name is the key, its body the owner, and stale_at when it expires. */
enum { ENV_EVERY = UINT32_MAX };

struct store_scan {
    struct store_read read;
    enum document_kind kind;
    bool of_claims;
    enum claim_kind claim_kind;
    char from[ID_MAX]; /* of a page: after this name; "": from the beginning */
    bool downwards;    /* of a page: in reverse, from the highest name */
    unsigned limit;    /* 0: no paging */
    size_t byte_limit; /* of a page: it ends after the body that exceeds it */

    struct document *documents; /* mem_alloc'd */
    size_t count;
    bool more; /* of a page */
};

/* Abandons a list or a count in progress whose result is not needed any more, because the
 * client that asked has left. If it waits for a connection it is not executed, and a search
 * in progress ends soon; other reads are short. done is called as usual, and gets
 * STORE_FAILED unless the read had ended. Call it on the loop. */
void store_read_abandon(struct store_read *read);

/* For drivers, on any thread. */
bool store_read_is_abandoned(const struct store_read *read);

/* Frees what the read delivered (runs, documents, bytes) and clears it for another start.
 * Does nothing if the read was never started. */
void store_read_finish(struct store_read *read);

/* ---- files ---- */

/* Files of deployments, in a database that several gateways share, so that every gateway
 * has the files that another one received. A file has a name within its environment and may
 * be of any size. It is written and read in pieces, each by a separate request, so only one
 * piece is in memory.
 *
 *   write piece 1, 2, … and at last 0 ─► the file is complete;   a short one: 0 alone
 *
 * Only the leading gateway may write and remove; any other gets STORE_MOVED. Each request
 * may be repeated. */
enum {
    FILE_PIECE_BYTES = 256 * 1024, /* of every piece but the last */
    FILE_NAME_MAX = 96,            /* with the terminating zero */
    FILE_PAGE = 500,               /* names that one list returns at most */
};

enum store_file_step {
    FILE_PUT,    /* STORE_LOST: piece 0 was sent, but other pieces are missing */
    FILE_GET,    /* STORE_MISSING: the file does not exist, or is not complete */
    FILE_REMOVE, /* also if the file is incomplete or does not exist */
    FILE_LIST,   /* names of all environments, also of incomplete files */
};

struct store_file_name {
    uint32_t env;
    char text[FILE_NAME_MAX];
};

struct store_file {
    enum store_file_step step;
    struct store_file_name name; /* of a list: after this name; "": from the beginning */
    uint32_t piece;              /* of PUT and GET; counts from 0 */
    int64_t size;                /* bytes of the whole file; of PUT: in, of GET: out */
    struct slice content;        /* of PUT: the piece; borrowed until done */
    void (*done)(struct store_file *req, enum store_status status);

    struct bytes *body;            /* of GET; empty past the end of the file */
    struct store_file_name *names; /* of LIST; mem_alloc'd */
    size_t count;
    enum store_status status; /* set by the driver */
    struct list link;         // the driver's
};

/* Returns the number of pieces of a file of that size. */
static inline uint32_t store_file_pieces(int64_t size)
{
    return size > 0 ? (uint32_t)((size - 1) / FILE_PIECE_BYTES) + 1 : 1;
}

/* ---- stored bytes ---- */

/* Every row of an environment counts as the bytes that clients put into it plus a fixed
 * part. The fixed part stands for the rest of the row and for indexes
 * (src/store/sqlite/sqlite_sizes.h has the table of all rows). The sum is stored along with
 * the rows, so it matches them even after a crash. */
enum {
    STORED_RUN = 1536, /* bytes; with the rows of its packets and tags */
    STORED_ROW = 128,  /* a document, a claim, a task's run counter */
};

/* Names count twice, because they are also in an index. */
static inline int64_t stored_document_bytes(size_t name, size_t body)
{
    return STORED_ROW + (int64_t)(2 * name + body);
}

static inline int64_t stored_claim_bytes(size_t key)
{
    return STORED_ROW + (int64_t)(2 * key);
}

static inline int64_t stored_task_bytes(size_t name)
{
    return STORED_ROW + (int64_t)name;
}

static inline int64_t stored_run_bytes(const struct run *run)
{
    return STORED_RUN + (int64_t)(run_text_bytes(run) + 2 * run_tag_bytes(run));
}

/* The stored bytes of the environment grew by bytes, or shrank if bytes is negative. */
typedef void store_stored_fn(void *owner, uint32_t env, int64_t bytes);

/* Returns the environment's number, or one above the numbers of all environments. */
typedef uint64_t store_share_fn(void *owner, uint32_t env);

/* ---- housekeeping ---- */

/* The counters of an environment: known at start, and reported after a purge. */
struct store_position {
    uint32_t env;
    uint64_t seq;    /* of the last change */
    uint64_t purged; /* highest rev that retention removed */
    int64_t floor;   /* all final runs last changed before this are gone; Unix ms */
    int64_t stored;  /* sum of its rows; see STORED_RUN */
};

/* Removes final runs last changed before `before`, lowest rev first, at most limit. Then it
 * removes, at most limit of each: batches and packets last written before
 * `documents_before` that no run refers to, and waitpoints stale before then that no
 * unfinished run waits for. whole: the environment has ended and is no longer written to;
 * its claims and run counters are removed, too, at most limit of each. */
struct store_purge {
    uint32_t env;
    int64_t before, documents_before; /* Unix ms */
    unsigned limit;
    bool whole;
    void (*done)(struct store_purge *req, enum store_status status);

    size_t count;        /* number of runs removed */
    bool more_documents; /* or claims, or counters */
    struct store_position position;
    enum store_status status;
    struct list link; // the driver's
};

/* ---- several gateways on one database ---- */

enum { PEER_URL_MAX = 288 }; /* a host name of 253 characters fits */

/* The connection by which a gateway sent its last beat, if that beat registered it. */
enum store_session {
    SESSION_UNKNOWN, /* not registered, or the database does not show it */
    SESSION_OPEN,
    SESSION_ENDED,
};

/* A gateway process. A restarted gateway is a new one, with a higher number. */
struct store_gateway {
    uint64_t id;
    uint64_t beat; /* heartbeats so far */
    bool draining;
    enum store_session session;
    char name[96];
    char peer_url[PEER_URL_MAX]; /* where others reach it; "": it serves no peers */
};

/* A heartbeat, sent about once a second. The response has what the database knows about all
 * gateways. Its times come from the database's clock alone. STORE_MOVED: our own row is
 * gone, because others considered this process dead or another process started under our
 * name. */
struct store_beat {
    bool draining;
    /* Registers the connection. Our own row then has SESSION_OPEN, unless that is impossible
     * because of a pooler or missing rights. */
    bool registers;
    void (*done)(struct store_beat *req, enum store_status status);

    uint64_t me;                    /* our own number */
    struct store_gateway *gateways; /* all of them; the driver's until done returns */
    size_t gateway_count;
    uint64_t leader;  /* 0: no gateway leads */
    int64_t clock_ms; /* the database's wall clock when it responded; Unix ms */
    enum store_status status;
};

/* Takes the lead of all environments. This succeeds if no gateway has the lead, or if its
 * holder is listed in dead and has not beaten since it was found dead. If this gateway has
 * the lead already, it keeps it. After STORE_OK only our commits succeed, and position()
 * includes the changes of others. STORE_TAKEN: another gateway has the lead. STORE_MOVED:
 * as for a beat. STORE_FAILED: the outcome is unknown; try again. */
struct store_lead {
    const struct store_gateway *dead; /* borrowed until done */
    size_t dead_count;
    void (*done)(struct store_lead *req, enum store_status status);

    enum store_status status; /* set by the driver */
};

/* Gives up the lead and our own row. Another process need not wait until we count as dead,
 * and connected processes are notified at once (store::on_left), with the successor. From this call on, our
 * commits may fail with STORE_MOVED. STORE_FAILED: the outcome is unknown. */
struct store_leave {
    uint64_t successor; /* the gateway that should take the lead; 0: any */
    void (*done)(struct store_leave *req, enum store_status status);

    enum store_status status; /* set by the driver */
};

/* Removes the rows of dead gateways, except those that have beaten since they were seen. If
 * such a gateway comes back, its next beat gets STORE_MOVED, and it joins again. */
struct store_forget {
    const struct store_gateway *dead; /* borrowed until done */
    size_t dead_count;
    void (*done)(struct store_forget *req, enum store_status status);

    enum store_status status; /* set by the driver */
};

/* Reads the positions of all environments again, for a gateway that does not lead. After
 * STORE_OK, position() returns what the database had when it answered; environments that
 * this gateway leads keep their own. */
struct store_recount {
    void (*done)(struct store_recount *req, enum store_status status);

    enum store_status status; /* set by the driver */
};

/* Gives the database a new epoch if another server has become the primary one since a gateway
 * noted that last, unless failovers are lossless. Then reads the epoch. */
struct store_renew {
    void (*done)(struct store_renew *req, enum store_status status);

    enum store_status status; /* set by the driver, like what follows */
    char epoch[17];
    bool is_other; /* this server is not the primary one whose history this gateway reads */
};

struct store_ops {
    const char *name;
    void (*commit)(struct store *store, struct store_commit *req);
    void (*read)(struct store *store, struct store_read *req);
    void (*purge)(struct store *store, struct store_purge *req);
    /* Returns the environment's position, known since the store was opened; at a gateway that
     * does not lead, as of its last recount. Zeros if nothing was ever written to it. */
    struct store_position (*position)(struct store *store, uint32_t env);
    /* All eight are NULL if this process alone has the database. It then leads everything,
     * and files are in its data directory. */
    void (*beat)(struct store *store, struct store_beat *req);
    void (*lead)(struct store *store, struct store_lead *req);
    void (*leave)(struct store *store, struct store_leave *req);
    void (*forget)(struct store *store, struct store_forget *req);
    void (*recount)(struct store *store, struct store_recount *req);
    void (*renew)(struct store *store, struct store_renew *req);
    /* This gateway, which has not written, reads the history of this epoch from now on: forgets
     * all positions but those that it got with the lead. */
    void (*begin_history)(struct store *store, const char epoch[17]);
    void (*file)(struct store *store, struct store_file *req);
    /* Prepares the driver for process exit. NULL: every request completes in any case. From
     * now on, a request to a database that does not respond fails after a few seconds, even
     * if it may still take effect, and so do later requests. */
    void (*limit_wait)(struct store *store);
    /* Closes the store. Requests in progress are completed first; no new ones may be
     * started. The store is freed once closed returns. */
    void (*close)(struct store *store, void (*closed)(struct store *store));
};

/* Drivers embed this as their first member. */
struct store {
    const struct store_ops *ops;
    char epoch[17];    /* random, made with the database */
    uint64_t term;     /* of our lead, counts the leads of all gateways; 0: we do not lead,
                        * or have the database alone */
    bool failing;      /* a sync failed: from now on, nothing is acknowledged */
    bool full;         /* the last commit found no disk space */
    int64_t synced_us; /* when the reported commit was on the disk; monotonic µs; 0: none */
    /* Set by the caller of close, for its closed callback; drivers do not read it. */
    void *owner;
    /* Called on the loop thread for each transaction, before its requests are done. NULL:
     * not reported; position() has the sum all the same. */
    store_stored_fn *on_stored;
    void *stored_owner;
    /* Called on the loop thread when another gateway has taken our lead, before the
     * requests that discovered this are done. May be NULL. */
    void (*on_moved)(void *owner);
    /* Called, with moved_owner, when another process gave up the lead. successor: the gateway
     * that should take it; 0: any. A connection pooler may drop the notification; the next
     * beat finds the lead free in any case. May be NULL. */
    void (*on_left)(void *owner, uint64_t successor);
    /* Called, with moved_owner, when the connection for beats was lost. It may be open again
     * before the next beat. May be NULL. */
    void (*on_cut)(void *owner);
    void *moved_owner;
    /* Called, with history_owner, when another server has become the primary one. All that this
     * gateway has read may be of another history. NULL: this process must start again, as after
     * on_moved. A gateway that may write must set it to NULL. */
    void (*on_history)(void *owner);
    void *history_owner;
    /* Groups environments: those with the same return value share one part of the capacity.
     * NULL: each environment has a part of its own. Called with stored_owner. */
    store_share_fn *share_of;
};
