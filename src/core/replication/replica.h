/* replica.h - the follower's side of replication: memory that keeps up with the leader's.
 *
 *   OFF ──connected──► HELLO ──hello, positions──► CATCHING ──accounts read───► FOLLOWING
 *   ▲ ▲                                                                            │
 *   │ └───── the connection ended, a jump, another epoch, a difference ────────────┘
 *   └──────► LOADING: memory is brought to the state of the database, without a leader
 *
 * While CATCHING, frames wait in their order. Environments are not waited for: each of them is
 * loaded or catches up alone (replica_held.c, catch_up.h), and others are shown. The
 * database may be ahead of the leader's memory, by commits whose responses are in flight. Memory
 * that has caught up with the database is therefore not shown before the stream has reached the
 * same position: no gateway shows more than its leader. Others do not wait for an environment that
 * is ahead; all wait for the accounts.
 *
 * A beat is the response to a numbered ask. Memory is trusted until the time when that ask
 * was sent, plus the time that the leader had left when it answered. So a follower trusts no
 * longer than its leader, however long the beat was on the way and however long this process
 * was suspended.
 *
 * Changes of an environment that have to wait are held, and those of others are applied
 * (replica_held.c). If too many are held, or the leader omits some, this environment alone
 * catches up from the database.
 *
 * Memory outlives connections: the next one continues from it. */
#pragma once

#include "base/slots.h"
#include "core/replication/catch_up.h"
#include "core/replication/waiting.h"

enum {
    REPLICA_ASK_MS = 250,           /* between asks */
    REPLICA_ASKS = 256,             /* asks whose time is known */
    REPLICA_SILENCE_MS = 10 * 1000, /* without a beat, the connection is ended */
    REPLICA_AHEAD_MS = 10 * 1000,   /* the same, if the stream does not reach memory */
    REPLICA_WAITING_MAX = 64 << 20, /* bytes of frames that wait, in memory */
    /* Frames of one environment that are held: bytes, and changes of runs, of which the database
     * reads about as many at once. */
    REPLICA_HELD_BYTES = 8 << 20,
    REPLICA_HELD_CHANGES = 1000,
};

enum replica_state {
    REPLICA_OFF,
    REPLICA_LOADING,
    REPLICA_HELLO,
    REPLICA_CATCHING,
    REPLICA_FOLLOWING
};

struct replica_options {
    uint64_t gateway; /* our store_gateway::id */
    /* Sends a frame to the leader; borrows it. */
    void (*send)(void *link, const struct repl_frame *frame);
    /* The connection must end; why is for the log. The replica is OFF already. */
    void (*end)(void *link, const char *why);
    void *link; /* of the two above */
    /* Called after end: memory must be given up, because it is of another history. */
    void (*give_up)(void *owner, const char *why);
    /* Returns the environment, and brings it into memory if its account is known; NULL: it
     * is not. */
    struct environment *(*find)(void *owner, uint32_t number);
    /* Takes a document of environment 0, unless memory has a newer one. Borrows it. An error
     * ends the connection. */
    enum err (*take_document)(void *owner, const struct document *document,
                              struct failure *why);
    /* Documents were taken, and all that were written together: another frame follows, or the
     * message has ended. An error ends the connection. NULL: not needed. */
    enum err (*documents_end)(void *owner, struct failure *why);
    /* Reads all documents of environment 0 again: takes newer ones, and removes those that
     * the database does not have. Then calls replica_accounts_read, later. */
    void (*read_accounts)(void *owner);
    /* Returns the next environment in memory (engine_next_environment). */
    struct environment *(*next)(void *owner, uint32_t *at);
    /* replica_load has ended. */
    void (*loaded)(void *owner, enum err status);
    /* Called after changes of an environment were applied, or runs of it were read from the
     * database: final runs may have to leave memory. All have to after replica_was_left. NULL:
     * not needed. */
    void (*applied)(void *owner, struct environment *env);
    /* Retention has moved the floor of the environment, at the leader or meanwhile in the
     * database. NULL: not needed. */
    void (*floor_moved)(void *owner, struct environment *env);
    /* A beat has answered a question: replica::answered has grown, and replica_left_ms may
     * have. NULL: not needed. */
    void (*answered)(void *owner);
    void *owner;
};

/* An environment as a follower has it. */
struct followed {
    struct catch_up_item item; /* of environment 0, env is NULL */
    bool is_on;                /* the leader has it in memory, by this connection */
    uint64_t stream;           /* the leader has applied this much, by the frames so far */
    int64_t floor;             /* of the environment, as last reported */

    struct run before;      /* of REPL_BEFORE; its id is "": none */
    uint64_t purged_at;     /* environment_purge */
    struct frame_line held; /* its frames that wait while those of others are applied */
    bool lacks;             /* frames were given up; it has to be read from the database */
    int64_t until;          /* of the first one of them (waiting_frame::until) */
    const char *why;        /* that one was given up, for the log */
    bool is_alone;    /* not shown: it is read from the database, or was, and is ahead */
    bool is_catching; /* it is being read; nothing of it is applied */
    bool is_loading;  /* it is alone, with nothing in memory; counted in replica::loading */
    uint64_t missed;  /* changes that were given up, and that memory lacks */
    int64_t landed_at; /* when it was read; loop_boot_ms, as the next one */
    int64_t logged_at; /* when it was logged that it is read; 0: never */
    struct list link;  // replica::ready
};

struct replica {
    struct loop *loop;
    struct store *store;
    struct replica_options options;
    enum replica_state state;
    struct repl_head head;   /* of the leader; of the last one while OFF */
    uint64_t answered;       /* number of the last ask that a beat has answered */
    uint64_t changes, bytes; /* so far: applied; received */
    /* Newest of all runs that were created since, even if they have left memory. */
    char newest_id[ID_MAX];
    int64_t newest_ms;            /* Unix ms; of a creation */
    uint64_t equals, differences; /* so far: of sums that were compared */

    /* Private to replica.c. */
    bool has_hello;
    struct slots envs; /* of struct followed, by number */
    unsigned loading;  /* environments that are loaded by this connection */
    bool ahead;        /* the accounts are ahead of the stream, so nothing is shown yet */
    struct catch_up catch_up;
    bool has_documents; /* they were taken; options.documents_end is due */
    bool reads_accounts, accounts_were_read;
    bool begins_again;         /* CATCHING begins once the present reads have ended */
    uint64_t accounts_applied; /* changes of environment 0 that memory has for sure */
    uint64_t accounts_target;  /* the same, once they were read */
    struct waiting_frames waiting;
    struct list ready;        // followed::link; held frames of these may be applied
    bool has_alone;           /* an environment may be (followed::is_alone, ::lacks) */
    struct deferred applying; /* applies waiting frames in time slices */
    uint64_t asked;           /* number of the last ask */
    int64_t asked_at[REPLICA_ASKS];
    int64_t ask_at, heard_at; /* heard_at: the last beat, or an earlier step */
    int64_t follows_at;       /* since when it is FOLLOWING */
    int64_t trust_until;      /* these times are of loop_boot_ms */
    struct timer timer;       /* while connected */
};

void replica_init(struct replica *replica, struct loop *loop, struct store *store,
                  const struct replica_options *options);

/* Requires OFF and replica_is_idle. Environments are the caller's to destroy. */
void replica_finish(struct replica *replica);

/* Memory is of another history than the database. Everything in it is loaded again, the
 * accounts too, by replica_load or the next connection. Requires OFF and replica_is_idle. */
void replica_begin_history(struct replica *replica);

/* Brings memory to the state of the database without a leader: before the first connection, or
 * when this gateway has taken the lead, so that the store's positions are current. Calls
 * options.loaded later. Requires OFF. */
void replica_load(struct replica *replica);

/* The connection to the leader is open and authenticated: says hello. Requires OFF. */
void replica_connected(struct replica *replica);

/* The connection has ended, and with it trust. Does nothing while OFF. While LOADING, calls
 * nothing any more. */
void replica_disconnected(struct replica *replica);

/* A frame of the leader arrived, of that many bytes. Takes ownership of its content. */
void replica_receive(struct replica *replica, struct repl_frame *frame, size_t bytes);

/* The message of the leader has ended: documents of the accounts that it had take effect. */
void replica_message_end(struct replica *replica);

/* options.read_accounts has ended. seq: memory has exactly the accounts of the database at this
 * position; 0: it has those of some moment after read_accounts. */
void replica_accounts_read(struct replica *replica, uint64_t seq, enum err status);

/* Returns for how long from now memory may be shown; 0: it is in doubt. Correct also right
 * after this process was suspended. */
int64_t replica_left_ms(const struct replica *replica);

/* Returns true if memory has each environment of the leader, although it may lack changes. */
bool replica_is_complete(const struct replica *replica);

/* Asks for a beat, and returns the number of the question. Once replica::answered has
 * reached it, memory has everything that the leader had applied when it answered. Fewer than
 * REPLICA_ASKS may be without an answer. While the replica does not follow, nothing is sent,
 * and only a later question gets an answer. */
uint64_t replica_ask(struct replica *replica);

/* Returns true if the leader does not have the environment in memory. It is loaded again
 * before it is shown. */
bool replica_was_left(const struct replica *replica, uint32_t number);

/* Call it before such an environment is destroyed. */
void replica_forget(struct replica *replica, uint32_t number);

/* Returns true if it has begun no read that is still in progress. */
bool replica_is_idle(const struct replica *replica);
