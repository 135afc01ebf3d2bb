/* follower.h - the memory of a gateway that stands by: the leader's accounts and runs.
 *
 *   following (server/peers) ─► replica ─┬► followed accounts ─► struct accounts
 *                                        └► environments of the engine, which decides nothing
 *
 *                      no leader, or in doubt        the leader's beats are answered
 *   the memory is       api_begin_doubt ◄──────────────────────► api_end_doubt
 *   there: api_follow
 *
 * When this gateway takes the lead, its memory stays: only what it lacks is read from the
 * database. */
#pragma once

#include "accounts/account_writer.h"
#include "core/engine/engine.h"
#include "net/client/trust.h"
#include "server/peers/leader_commands.h"
#include "store/lead/leading.h"

struct api;
struct follower;

/* All pointers are borrowed until follower_destroy, but for api: until follower_end. */
struct follower_options {
    struct store *store;
    const struct vault *vault;
    const struct trust *trust; /* NULL: no leader speaks TLS */
    struct leading *leading;
    struct engine *engine;
    struct accounts *accounts;
    struct account_writer *writer;
    struct api *api;
    /* The database has another history, and memory cannot become that in place. */
    void (*on_other_history)(void *owner, const char *why);
    /* follower_take_lead has ended. */
    void (*on_loaded)(void *owner, enum err status);
    void *owner;
    /* The leader has not answered for a while (following_options::silent). */
    void (*on_silent)(void *silent_owner);
    void *silent_owner;
};

/* Looks for a leader from now on. The engine follows (engine_follow). */
struct follower *follower_create(struct loop *loop, const struct follower_options *options);

/* Returns for how long from now memory may be shown; 0: it is in doubt, or not there yet. */
int64_t follower_left_ms(const struct follower *follower);

/* Returns true once memory has been current, and api_follow was called. */
bool follower_serves(const struct follower *follower);

/* Returns true if it has followed for so long that runs which are not in memory are older than
 * those that this gateway would create, whatever the clock of the leader was. */
bool follower_knows_newest(const struct follower *follower);

/* Asks the leader for its position, and returns the number of the question (certainty::ask). */
uint64_t follower_ask(struct follower *follower);

/* Sends a subcommand to the leader, as following_command does. */
enum err follower_command(struct follower *follower, struct leader_command *command,
                          struct slice line, struct failure *why);

/* Returns true if the leader does not have the environment any more (engine_options). */
bool follower_was_left(const struct follower *follower, uint32_t number);

/* Returns true if nothing has come into memory so far. */
bool follower_is_empty(const struct follower *follower);

/* This gateway leads: ends the connection, and reads what memory lacks from the database. Then
 * calls on_loaded, later. ERR_MOVED: memory is of another history, so this process must start
 * again. */
void follower_take_lead(struct follower *follower);

/* Ends everything for good; on_loaded is still called if it is due. */
void follower_end(struct follower *follower, const char *why);

/* Returns true once nothing is in flight after follower_end or follower_take_lead. */
bool follower_may_end(const struct follower *follower);

/* Requires follower_may_end. Ignores NULL. */
void follower_destroy(struct follower *follower);
