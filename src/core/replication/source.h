/* source.h - the leader's side of replication: what it applies goes to its followers.
 *
 *   hello of a follower ─► hello, positions of all environments, in one turn
 *   changes as they are applied: engine, accounts, retention ─► every follower
 *   ask ─► beat, unless this leader is in doubt
 *   every 10 s ─► sums of the environments that have changed since the last ones
 *   report of a follower ─► how far it is behind
 *
 * The stream is ordered: each frame is true at its place in the order. The leader never
 * waits for a follower. Without followers, a change costs one comparison. Values in and out:
 * the owner sends frames and ends connections.
 *
 * Payloads and outputs longer than SOURCE_PACKET_MAX are left out, and followers read them from
 * the database (left_out.h): there is one leader, and sending them would cost it more for each
 * follower. While a follower reads slowly, all those longer than SOURCE_PACKET_SLOW are left
 * out, and an environment that floods is omitted for the rest of the second: followers read it
 * from the database, and the changes of others do not wait. An environment floods if its changes
 * of this second are longer than its share of what the link carries; and if all others together
 * send too much, those of them that send more than the average. */
#pragma once

#include "base/list.h"
#include "base/loop.h"
#include "base/slots.h"
#include "core/live/environment.h"
#include "core/replication/frames.h"

enum {
    SOURCE_PACKET_MAX = 64 << 10, /* bytes */
    SOURCE_PACKET_SLOW = 512,     /* the same, while options.is_slow */
    SOURCE_LITTLE = 16 << 10,     /* bytes that an environment may send in each second */
};

/* Embedded in a connection, zeroed. It is a follower once its hello was accepted. */
struct source_follower {
    bool is_on;                /* it gets what is applied */
    uint64_t gateway;          /* store_gateway::id */
    uint32_t version;          /* of replication, which both sides speak */
    int64_t joined_ms;         /* when its hello was accepted; Unix ms */
    uint64_t joined_at;        /* source::changes then */
    struct repl_report report; /* the last one */
    uint64_t behind;           /* changes of runs that it lacked then */
    int64_t reported_ms;       /* when it arrived, monotonic; 0: none has */
    struct list link;          // source::followers; linked while is_on
};

struct source_options {
    struct repl_head head; /* epoch of the database, term of this lead */
    uint64_t gateway;      /* our store_gateway::id */
    uint64_t accounts_seq; /* what was applied in environment 0 */
    /* Sends a frame to one follower, or to each of source::followers if `to` is NULL. Borrows
     * the frame. May end connections, of any follower (source_leave). */
    void (*send)(void *owner, struct source_follower *to, const struct repl_frame *frame);
    /* Returns true while the unsent bytes of a follower delay others' changes. NULL: never. */
    bool (*is_slow)(void *owner);
    /* Returns how many bytes a second the environments that flood may send together, and all
     * others as two of them; SIZE_MAX: any number. Called while is_slow. */
    size_t (*allowance)(void *owner);
    /* The connection must end, after REPL_END with this reason. The follower has left. */
    void (*end)(void *owner, struct source_follower *follower, const char *why);
    /* Returns the next environment in memory (engine_next_environment). */
    struct environment *(*next)(void *owner, uint32_t *at);
    /* Returns for how long from now this leader trusts itself; 0: it is in doubt. */
    int64_t (*left_ms)(void *owner);
    /* A follower has sent REPL_USES or REPL_COMMAND. Borrows the frame. NULL: not needed. */
    void (*take)(void *owner, struct source_follower *from, const struct repl_frame *frame);
    /* A follower has left; a response to its command has no receiver. NULL: not needed. */
    void (*left)(void *owner, struct source_follower *follower);
    void *owner;
};

struct source {
    struct loop *loop;
    struct source_options options;
    struct list followers; // source_follower::link
    uint64_t changes;      /* of runs, sent to all followers so far */
    uint32_t version;      /* the lowest one of the followers */

    /* Private to source.c. */
    struct timer timer;      /* for the next sums, while there are followers */
    struct deferred summing; /* sends sums in time slices */
    uint32_t sum_at;         /* for source_options::next */
    struct slots envs;       /* of struct source_env, by number */
    /* Since a follower reads slowly: */
    int64_t second;               /* the present one; monotonic */
    unsigned floods, were_floods; /* environments that flood in it, and in the one before */
    unsigned active;              /* environments with changes in it */
    size_t others;                /* bytes in it of those that do not flood */
};

/* An environment whose changes were sent. */
struct source_env {
    uint64_t summed; /* seq of the last sum + 1; 0: none */
    int64_t second;  /* source::second, of the two below; -1: none yet */
    size_t sent;     /* bytes in it */
    bool floods;
};

void source_init(struct source *source, struct loop *loop,
                 const struct source_options *options);

/* Requires that no follower is left. */
void source_finish(struct source *source);

/* A frame arrived on a connection. Borrows it. */
void source_receive(struct source *source, struct source_follower *follower,
                    const struct repl_frame *frame);

/* The connection has ended. Does nothing if it was not a follower. */
void source_leave(struct source *source, struct source_follower *follower);

/* Ends the connections of all followers. */
void source_end_all(struct source *source, const char *why);

/* Call it for each change, in order, right before it is applied. before: the run as it is in
 * memory; NULL: it is new, or the change is of a document. A change of the accounts whose
 * commit was in doubt may have the number 0. */
void source_apply(struct source *source, const struct run *before,
                  const struct change *change);

/* Call it when an environment has come into memory, after the change of its account. */
void source_add(struct source *source, const struct environment *env);

/* Call it when an environment has left memory. */
void source_drop(struct source *source, uint32_t env);

/* Call it when retention has removed runs, before they leave memory. */
void source_floor(struct source *source, const struct store_position *position);
