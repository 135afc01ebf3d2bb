/* following.h - keeps this gateway connected to the leader while it stands by.
 *
 *   the database names a leader with a peer_url ─► peer_link ─► replica (core/replication)
 *        ▲                                             │
 *        └── a pause, longer each time, up to 5 s ─────┘ the connection ends
 *
 * Memory stays when a connection ends, and the next one continues from it. */
#pragma once

#include "core/replication/replica.h"
#include "net/client/trust.h"
#include "server/peers/leader_commands.h"

struct following;

struct following_options {
    struct store *store;
    const struct vault *vault;
    const struct trust *trust; /* for https; NULL: such a leader is not followed */
    /* Returns our store_gateway::id; 0: not known yet. */
    uint64_t (*me)(void *owner);
    /* Returns the gateway that leads; NULL: none, or this one (leading_leader). */
    const struct store_gateway *(*leader)(void *owner);
    /* The connection has ended, and with it trust. Not called after following_end. NULL: not
     * needed. */
    void (*disconnected)(void *owner);
    /* Copies up to `most` last uses that the leader has to store, and returns their number.
     * is_new: this is the first call for this connection. NULL: nothing is reported. */
    size_t (*uses)(void *owner, bool is_new, struct repl_use *list, size_t most);
    /* The connection has ended because the leader did not answer. Other connections to it may
     * be silent, too, without having ended. NULL: not needed. */
    void (*silent)(void *owner);
    /* The leader is of a later version, and has written a value that this one cannot store.
     * Called once for each of them. NULL: not needed. */
    void (*unknown)(void *owner);
    void *owner;
    /* Its gateway, send, end and link are ignored. */
    struct replica_options replica;
};

/* Looks for a leader from now on. */
struct following *following_create(struct loop *loop,
                                   const struct following_options *options);

/* Ends the connection, and opens none until following_resume: memory is of another history. */
void following_pause(struct following *following, const char *why);
void following_resume(struct following *following);

/* Ends the connection for good: this gateway leads, or stops. The replica stays. */
void following_end(struct following *following, const char *why);

/* Returns for how long from now memory may be shown: 0 if the database names another leader by
 * now, otherwise replica_left_ms. */
int64_t following_left_ms(struct following *following);

/* Memory may not be shown any more. Logs it, at most once a minute, if the leader is connected
 * but its last answer is not valid any more: no other line names this cause. */
void following_log_late(struct following *following);

/* Sends a subcommand to the leader. ERR_DRAINING, with the reason: none is connected, or it is
 * of an older version; then done is not called. */
enum err following_command(struct following *following, struct leader_command *command,
                           struct slice line, struct failure *why);

struct replica *following_replica(struct following *following);

/* Returns true once nothing is in flight after following_end. Poll it before the store is
 * closed. */
bool following_may_end(const struct following *following);

/* Requires following_may_end. Ignores NULL. */
void following_destroy(struct following *following);
