/* gateway.h - starts, drains and stops a gateway.
 *
 *   gateway_start ─► standing by ─► loading ─► ready ─ gateway_drain ─► draining ─► on_stopped
 *                                      └── fails: on_stopped with the reason ───┘
 *
 * With SQLite it does not stand by. With a database shared by several gateways, it stands
 * by until it leads. When another one takes the lead, it stops with ERR_MOVED, or with
 * ERR_DRAINING if `runcast lead` has handed the lead over, and may be started again at once.
 *
 * Everything happens on the given libuv loop. The gateway is freed once on_stopped was
 * called and the loop has run until it had nothing left to do.
 *
 * A process has one thread for all its gateways, because metrics, the log level, the caches
 * of recurring texts and the hash key are shared without a lock. The process must ignore
 * SIGPIPE, as serve.c does. */
#pragma once

#include <stdio.h>

#include "base/error.h"

struct config;
struct gateway;
struct ring;
struct uv_loop_s;

struct gateway_events {
    /* Called once it listens and has loaded everything; port: the one in use. May be
     * NULL. */
    void (*on_ready)(void *owner, int port);
    /* Called once it listens while another gateway leads. May be NULL. */
    void (*on_standby)(void *owner);
    /* The last callback. reason.code OK: drained; otherwise why it could not start or
     * continue. */
    void (*on_stopped)(void *owner, const struct failure *reason);
    void *owner;
};

/* Checks everything that a start would reject before it opens the data directory: keys in
 * the environment, public addresses without keys, and unusable certificates.
 * ERR_INVALID. */
enum err gateway_check(const struct config *config, struct failure *why);

/* ERR_INVALID, ERR_STORE with the reason: nothing was started, and no callback follows.
 * first_keys: where a first start on an empty data directory prints its keys. ring: for
 * WebSocket frames (net/ring.h), the caller's until the gateway has stopped; NULL: none. */
enum err gateway_start(struct uv_loop_s *loop, const struct config *config,
                       const struct gateway_events *events, FILE *first_keys,
                       struct ring *ring, struct gateway **gateway, struct failure *why);

/* Applies the config given to gateway_start, after config_take has changed it. Takes
 * ownership of the certificates, which the config names. */
struct certificates;
void gateway_reload(struct gateway *gateway, struct certificates *certificates);

/* Refuses new requests, and finishes those in flight within the drain timeout. */
void gateway_drain(struct gateway *gateway);

/* Stops at once, without waiting for clients. */
void gateway_stop(struct gateway *gateway);

/* Functions of subcommands: the member `run` of their rows (server/config/subcommand.h). */

/* Carries out a subcommand on accounts in the running gateway, through its admin socket; if
 * none is running, in this process, on the data directory. out gets the result. */
enum err gateway_command(const struct config *config, FILE *out, struct failure *why);

/* The same for `runcast dashboard`; opens the link if there is a desktop. */
enum err gateway_dashboard(const struct config *config, FILE *out, struct failure *why);

/* Lists the gateways on the database, asked at a running one. */
enum err gateway_list_all(const struct config *config, FILE *out, struct failure *why);

/* Work on the whole data directory, in this process, whether or not a gateway is running.
 * ERR_CANCELED: stopped by a signal. db check: ERR_INVALID if there are findings. */
enum err gateway_backup(const struct config *config, FILE *out, struct failure *why);
enum err gateway_restore(const struct config *config, FILE *out, struct failure *why);
enum err gateway_db_check(const struct config *config, FILE *out, struct failure *why);
enum err gateway_db_stats(const struct config *config, FILE *out, struct failure *why);
enum err gateway_copy(const struct config *config, FILE *out, struct failure *why);

/* Gives the database a new epoch after an old copy was put back, so that clients with an
 * older position restart with a snapshot. out gets the output of `restored`. */
enum err gateway_restored(const struct config *config, FILE *out, struct failure *why);

/* Makes the running gateway seal everything with another key: next-encryption-key, or one
 * that it generates. out gets the output of `vault rotate`. */
enum err gateway_rotate_vault(const struct config *config, FILE *out, struct failure *why);

/* Makes the gateway that leads hand the lead over. out gets the output of
 * `lead`. */
enum err gateway_pass_lead(const struct config *config, FILE *out, struct failure *why);
