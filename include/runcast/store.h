/* store.h - the seam between the engine and a database.
 *
 * The store has two things: runs, and documents (everything that is not a run: environment,
 * key, batch, queue, worker version, packet, …; a body of bytes under a kind and a name).
 * A commit is all or nothing:
 *
 *   claims    unique keys taken or released, each with its owner and an expiry: idempotency
 *             keys, request ids, one-time tokens
 *   changes   new versions of runs and documents; each takes the next number (seq) of its
 *             environment, in the order in which commits succeed
 *
 * A read has a kind: a load of one run or document, a piece of a document, a list or a count of
 * the runs that a filter wants, a walk along their changes, a scan of documents. Each kind is a
 * struct that begins with struct store_read, and store_ops::read takes them all:
 *
 *   op->list = (struct store_list){ .read = { READ_LIST, env, on_listed }, .limit = 10 };
 *   store->ops->read(store, &op->list.read);
 *
 *   static void on_listed(struct store_read *read, enum store_status status)
 *   {
 *       struct op *op = container_of(read, struct op, list.read);
 *
 * Requests follow one rule: the caller embeds the request in its own context, fills it in
 * and leaves it alone until done is called - exactly once, on the loop thread, never from
 * inside the call that started it. STORE_OK of a commit means synced to the disk.
 *
 * Several processes may share a database: versions decide races, and seq is stored with what
 * it numbers. */
#pragma once

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
    STORE_LOST,     /* some version was not the expected one */
    STORE_TAKEN,    /* a claim is somebody else's: see claim.taken and claim.owner */
    STORE_MISSING,  /* a read found nothing; of a commit: see MARK_PACKET */
    STORE_NO_SPACE, /* the disk is full; nothing was written */
    STORE_SLOW,     /* a read was stopped after 2 s: the filter matches too little */
    STORE_FAILED,   /* nothing was written, or nobody can tell: not acknowledged */
    STORE_MOVED,    /* another gateway leads the environment: forget it; not acknowledged */
};

/* The same as an error of the program. */
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
    DOC_CURRENT, /* one of an environment: which worker version is current */
    DOC_DEPLOYMENT,
    DOC_BUILD_VARIABLES, /* by deployment id; sealed, removed when its build has ended */
    DOC_TRACE_PIECE,     /* by run id, "/" and a number */
    DOC_KINDS            /* how many kinds there are; always the last */
};

/* Environment number of what belongs to the whole installation. */
enum { ENV_INSTALLATION = 0 };

struct document {
    enum document_kind kind;
    uint32_t env;
    uint32_t version;   /* counts from 1; the store's */
    struct bytes *name; /* unique per (env, kind) */
    struct bytes *body; /* NULL in a change: delete */
    int64_t stale_at;   /* in a change, of waitpoints; Unix ms: from then on it is kept only
                         for a run that waits; 0: not known */
};

void document_finish(struct document *document);

/* ---- commits ---- */

enum change_kind { CHANGE_RUN, CHANGE_DOCUMENT };

/* Which packets of the run are written again, and which positions move. */
enum change_marks {
    MARK_WHOLE = 1 << 0,   /* whole_rev; tags are written again */
    MARK_PAYLOAD = 1 << 1, /* payload; with MARK_WHOLE */
    MARK_METADATA = 1 << 2,
    MARK_OUTPUT = 1 << 3, /* output and error */
    MARK_KEY = 1 << 4,    /* only idempotency_key was cleared */
    MARK_PACKET =
        1 << 5, /* of a new run: its payload is the name of a packet, which must be
                             there: else STORE_MISSING */
};

struct change {
    enum change_kind kind;
    uint32_t env;
    uint32_t expected; /* version before; 0: does not exist yet */
    unsigned marks; /* runs: enum change_marks; a new run has WHOLE | PAYLOAD | METADATA */
    uint64_t seq;   /* the driver's */
    /* The caller's. The driver fills in run.version, the four revs, and run.number of a
     * new run (change_number does, once the seq is known), and document.version. */
    struct run run;
    struct document document;
};

/* Gives back the run's and the document's texts. */
void change_finish(struct change *change);

/* Puts the positions into the change; the driver calls it when seq is known. */
void change_number(struct change *change, uint64_t seq);

enum claim_kind {
    CLAIM_IDEMPOTENCY,
    CLAIM_REQUEST,
    CLAIM_ONE_TIME_TOKEN,
    CLAIM_BATCH,
    CLAIM_ATTEMPT,
    CLAIM_WAITPOINT
};

/* Whoever owns a claim may take it again. Two claims of one commit on one key are
 * tried in their order: of two owners the second is told of the first. */
struct claim {
    enum claim_kind kind;
    uint32_t env;
    struct bytes *key;       /* borrowed until done */
    char owner[ID_MAX];      /* in: who takes it; out, when taken: whose it is */
    int64_t expires_at;      /* Unix ms: from then on it is nobody's; 0: never */
    char instead_of[ID_MAX]; /* take it over from this owner; "" from nobody */
    bool release;            /* give it up if it is owner's, instead of taking it */
    bool taken;              /* the driver's: somebody else has it */
};

/* The key of a CLAIM_IDEMPOTENCY: the idempotency key with the task that it is used for, or
 * whatever else has keys of its own. */
struct bytes *idempotency_claim_key(struct slice task, struct slice key);

typedef void store_done_fn(struct store_commit *req, enum store_status status);
typedef bool store_apply_fn(struct store_commit *req);

struct store_commit {
    struct change *changes;
    size_t change_count;
    struct claim *claims; /* all are tried before the answer is STORE_TAKEN */
    size_t claim_count;
    int64_t now_ms; /* Unix: what expires_at is compared with */
    store_done_fn *done;
    /* Called before done when the commit has succeeded: does a part of what the changes
     * mean, and returns true if more is left. Called once a turn until nothing is left;
     * later commits of the same environment are not reported meanwhile. NULL: done does
     * all. */
    store_apply_fn *apply;

    enum store_status status; /* the driver's */
    int64_t begun_us;         /* the driver's; monotonic, as below */
    int64_t synced_us;        /* the driver's: when it was on the disk */
    size_t weight;            /* the driver's: what writing it costs, in changes */
    struct list link;         // of commit_turns.c's queues; a driver's lists
};

/* ---- reads ---- */

/* Names the struct that begins with the head. Zero is not a kind: a driver crashes on it. */
enum store_read_kind {
    READ_LOAD = 1, /* struct store_load */
    READ_PIECE,
    READ_LIST,
    READ_COUNT,
    READ_WALK,
    READ_SCAN,
};

/* The head of every read below. The results are zero when the caller begins the read, and those
 * that it delivers are the caller's. A read that failed delivers nothing that has to be freed. */
struct store_read {
    enum store_read_kind kind;
    uint32_t env;
    void (*done)(struct store_read *read, enum store_status status);
};

/* One run, whole, or one document, by name inside its environment. A run that is not there
 * is looked for in the others, in their order; read.env then says which environment has it. */
struct store_load {
    struct store_read read;
    const uint32_t *others; /* environments; of a run; borrowed until done */
    size_t other_count;
    bool is_document;
    enum document_kind kind;
    struct bytes *name; /* borrowed until done: run id or document name */

    struct run run;
    struct document document;
};

/* A piece of a document's body. Each is a read of its own: nothing stays open between two of
 * them, and seq tells whether the document was written, or made anew, meanwhile. */
struct store_piece {
    struct store_read read;
    enum document_kind kind;
    struct bytes *name; /* borrowed until done */
    uint64_t seq; /* of the change that wrote the body; in: STORE_LOST unless it is that;
                           0: whichever it is; out: which it is */
    size_t offset, limit; /* bytes; what comes is shorter where the body ends */
    bool last;            /* the last bytes of the body instead, at most limit */

    struct bytes *piece;
    size_t total; /* bytes of the whole body */
};

/* Every condition set must hold; lists are ORed; newest id first.
 * Ids are of text_make_id: their time is within an hour of created_at, so that a search
 * can stop where the times of created_from and created_to end. */
struct run_filter {
    unsigned statuses;                /* bit set; 0: any */
    unsigned machines;                /* bit set; 0: any */
    int is_test;                      /* -1: any */
    int64_t created_from, created_to; /* Unix ms, inclusive; 0: open */
    struct slice *tasks, *versions, *tags, *queues, *regions; /* the caller's arrays */
    size_t task_count, version_count, tag_count, queue_count, region_count;
    bool every_tag;                             /* all of the tags instead of any */
    struct slice batch, schedule, bulk, parent; /* absent: any */
    struct slice packet; /* stored beside it as its payload or output; absent: any */
    bool nothing;        /* matches no run (an unknown error group) */
};

/* What a list brings of its runs beside their facts. */
enum store_parts { STORE_METADATA, STORE_FACTS_ALONE, STORE_PACKETS };

struct store_list {
    struct store_read read;
    struct run_filter filter; /* borrowed until done */
    char after[ID_MAX];       /* older than this id; "": from the newest */
    char before[ID_MAX];      /* newer than this id; wins over after */
    unsigned limit;
    size_t byte_limit; /* the page ends behind the run that exceeds it; 0: none */
    enum store_parts parts;

    struct run *runs; /* newest first; mem_alloc'd */
    size_t count;
    bool more;    /* in the direction of travel */
    uint64_t seq; /* of the environment's last change that this read knows of */
};

/* How many runs a filter wants, by their status. */
struct store_count {
    struct store_read read;
    struct run_filter filter; /* borrowed until done */

    uint64_t counts[RUN_STATUS_COUNT];
    uint64_t seq; /* of the environment's last change that this read knows of */
};

/* Settled: run_is_settled. Unfinished: the others, a cancel that waits for its worker too. */
enum walk_kind { WALK_ALL, WALK_TAG, WALK_BATCH, WALK_UNFINISHED, WALK_SETTLED };

/* Runs in the order of their last change: after < rev <= up_to. */
struct store_walk {
    struct store_read read;
    enum walk_kind kind;
    struct bytes *name; /* of the tag or batch; borrowed until done */
    uint64_t after, up_to;
    int64_t created_from; /* 0: any */
    bool newest_first;
    bool takes_its_time; /* never STORE_SLOW: of a start, which cannot do without, and which
                          * asks for one page behind the other, with this same request */
    unsigned limit;
    size_t byte_limit; /* stops behind the run that exceeds it */

    struct run *runs; /* whole; mem_alloc'd */
    size_t count;
    bool more;    /* or, of a start, there may be */
    uint64_t seq; /* of the environment's last change that this read knows of */
};

/* Documents of a kind, by name; read.env ENV_EVERY for all environments. With a limit it is a
 * page of one environment, without one everything there is. */
enum { ENV_EVERY = UINT32_MAX };

struct store_scan {
    struct store_read read;
    enum document_kind kind;
    char from[ID_MAX]; /* of a page: behind this name; "": from the beginning */
    bool downwards;    /* of a page: the other way, from the highest name on */
    unsigned limit;    /* 0: no page */
    size_t byte_limit; /* of a page: it ends behind the body that exceeds it */

    struct document *documents; /* mem_alloc'd */
    size_t count;
    bool more; /* of a page */
};

/* Frees the runs, documents and bytes that the read has delivered, and clears them: it may be
 * begun again. Does nothing if the read was never begun. */
void store_read_finish(struct store_read *read);

/* ---- files ---- */

/* Files of deployments, of a database that several gateways share, so that each of them has what
 * another one took. A file has a name in its environment and any size, and is written and read
 * in pieces, each by a request of its own: so one piece is all of it that is in memory.
 *
 *   written: piece 1, 2, … and at last 0 ─► it is there, whole;   0 alone: what fits into one
 *
 * Only who leads writes and removes (else STORE_MOVED). Each request may be repeated. */
enum {
    FILE_PIECE_BYTES = 256 * 1024, /* of all pieces but the last */
    FILE_NAME_MAX = 96,            /* with its zero */
    FILE_PAGE = 500,               /* names that a list brings at most */
};

enum store_file_step {
    FILE_PUT,    /* STORE_LOST: piece 0, and not all of the others are there */
    FILE_GET,    /* STORE_MISSING: the file is not there, or not whole */
    FILE_REMOVE, /* also what is not whole, or not there at all */
    FILE_LIST,   /* names of all environments, also of what is not whole */
};

struct store_file_name {
    uint32_t env;
    char text[FILE_NAME_MAX];
};

struct store_file {
    enum store_file_step step;
    struct store_file_name name; /* of a list: those behind it, "": from the beginning */
    uint32_t piece;              /* of PUT and GET; counts from 0 */
    int64_t size;                /* bytes of the whole file; of PUT: in, of GET: out */
    struct slice content;        /* of PUT: the piece; borrowed until done */
    void (*done)(struct store_file *req, enum store_status status);

    struct bytes *body;            /* of GET; empty behind the end of the file */
    struct store_file_name *names; /* of LIST; mem_alloc'd */
    size_t count;
    enum store_status status; /* the driver's */
    struct list link;         // the driver's
};

/* How many pieces a file of that size has. */
static inline uint32_t store_file_pieces(int64_t size)
{
    return size > 0 ? (uint32_t)((size - 1) / FILE_PIECE_BYTES) + 1 : 1;
}

/* ---- what is stored ---- */

/* Every row that belongs to an environment counts as what clients put into it and a fixed
 * part for the rest of it and for indexes (src/store/sqlite/sqlite_sizes.h has the table of
 * all rows). The sum is kept with the rows: it is theirs after a crash, too. */
enum {
    STORED_RUN = 1536, /* bytes; with the rows of its packets and tags */
    STORED_ROW = 128,  /* of a document, a claim, a task's counter of runs */
};

/* Names are in an index, too. */
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

/* What is stored of the environment has grown by so many bytes, or shrunk if they are negative. */
typedef void store_stored_fn(void *owner, uint32_t env, int64_t bytes);

/* Above all numbers of environments, or the environment's own. */
typedef uint64_t store_share_fn(void *owner, uint32_t env);

/* ---- housekeeping ---- */

/* Where the counters of an environment stand: known at start, and told after a purge. */
struct store_position {
    uint32_t env;
    uint64_t seq;    /* of the last change */
    uint64_t purged; /* highest rev that retention removed */
    int64_t floor;   /* every final run last changed before is gone; Unix ms */
    int64_t stored;  /* bytes that its rows count: see STORED_RUN */
};

/* Removes final runs last changed before `before`, lowest rev first, at most limit; then
 * batches and packets last written before `documents_before` that no run refers to, and
 * waitpoints stale since before then that no unfinished run has among its waits, at most
 * limit of each. Of an environment that is over (whole) claims and counters of runs too, at
 * most limit of each: nothing is written there any more. */
struct store_purge {
    uint32_t env;
    int64_t before, documents_before; /* Unix ms */
    unsigned limit;
    bool whole;
    void (*done)(struct store_purge *req, enum store_status status);

    size_t count;        /* of runs */
    bool more_documents; /* or claims, or counters */
    struct store_position position;
    enum store_status status;
    struct list link; // the driver's
};

/* ---- several gateways on one database ---- */

/* A gateway's process. A restart is another one, under a higher number. */
struct store_gateway {
    uint64_t id;
    uint64_t beat; /* how often it has beaten */
    bool draining;
    char name[96];
};

/* "I live", said about once a second, and what the database knows of everybody. Nobody's clock
 * is in it but the database's. STORE_MOVED: our own row is gone, for others took us for dead or
 * another process has begun under our name. */
struct store_beat {
    bool draining;
    void (*done)(struct store_beat *req, enum store_status status);

    uint64_t me;                    /* our own number */
    struct store_gateway *gateways; /* all of them; the driver's until done returns */
    size_t gateway_count;
    uint64_t leader;  /* 0: nobody */
    int64_t clock_ms; /* the database's wall clock when it answered; Unix ms */
    enum store_status status;
};

/* Takes everything there is, if nobody leads it, or who leads it is among the dead and has not
 * beaten since it was found dead; if it is ours already it stays so. From the answer on only our
 * commits succeed, and position() knows how far others came. STORE_TAKEN: it is somebody else's.
 * STORE_MOVED: as of a beat. STORE_FAILED: nobody knows; it may be tried again. */
struct store_lead {
    const struct store_gateway *dead; /* borrowed until done */
    size_t dead_count;
    void (*done)(struct store_lead *req, enum store_status status);

    enum store_status status; /* the driver's */
};

/* Gives up everything that we lead, and our own row: another process need not wait until we
 * are dead, and connected processes are notified at once (store::on_left). From the call
 * on, our commits may be refused with STORE_MOVED. STORE_FAILED: it is unknown whether the
 * database did it. */
struct store_leave {
    void (*done)(struct store_leave *req, enum store_status status);

    enum store_status status; /* the driver's */
};

/* Removes the rows of dead gateways, each unless it has beaten since it was seen. The next
 * beat of a gateway that comes back gets STORE_MOVED, and it joins again. */
struct store_forget {
    const struct store_gateway *dead; /* borrowed until done */
    size_t dead_count;
    void (*done)(struct store_forget *req, enum store_status status);

    enum store_status status; /* the driver's */
};

struct store_ops {
    const char *name;
    void (*commit)(struct store *store, struct store_commit *req);
    void (*read)(struct store *store, struct store_read *req);
    void (*purge)(struct store *store, struct store_purge *req);
    /* Where the environment stands, known since the store was opened; zeros for one that was
     * never written to. */
    struct store_position (*position)(struct store *store, uint32_t env);
    /* NULL, all three: the database is this process's alone, which leads everything; files are
     * in its data directory. */
    void (*beat)(struct store *store, struct store_beat *req);
    void (*lead)(struct store *store, struct store_lead *req);
    void (*leave)(struct store *store, struct store_leave *req);
    void (*forget)(struct store *store, struct store_forget *req);
    void (*file)(struct store *store, struct store_file *req);
    /* The process is about to end: from now on what a database that does not answer has been sent fails
     * after a few seconds, whatever becomes of it, and so does what comes behind. NULL: it is
     * answered in any case. */
    void (*hurry)(struct store *store);
    /* Ends the store: what was begun is done first, and nothing is begun any more. Its memory
     * is gone when closed returns. */
    void (*close)(struct store *store, void (*closed)(struct store *store));
};

/* Drivers embed this as their first member. */
struct store {
    const struct store_ops *ops;
    char epoch[17];    /* random, made with the database */
    bool failing;      /* a sync failed: nothing is acknowledged any more */
    bool full;         /* the last commit found no space */
    int64_t synced_us; /* when the commit that is being reported was on the disk; monotonic
                          µs, 0: none is, or the driver does not know */
    /* Set by the caller of close, for its closed callback; no driver reads it. */
    void *owner;
    /* Called on the loop thread for each transaction, before its requests are done. NULL:
     * nobody asks; position() knows the sum all the same. */
    store_stored_fn *on_stored;
    void *stored_owner;
    /* Somebody else leads what we led: called on the loop thread before the requests that found
     * it are done. NULL: nobody asks. */
    void (*on_moved)(void *owner);
    /* Another process has given the lead up. A pooler may discard the notification: then the next
     * beat finds the lead free. Called with moved_owner. May be NULL. */
    void (*on_left)(void *owner);
    void *moved_owner;
    /* Environments for which it says the same are one to whoever shares out what the store
     * can do; NULL: each is by itself. Asked with the stored_owner. */
    store_share_fn *share_of;
};
