/* gateway.h - start, drain and stop a gateway.
 *
 *   gateway_start ─► standing by ─► loading ─► ready ─ gateway_drain ─► draining ─► on_stopped
 *                                      └── cannot: on_stopped with the reason ──┘
 *
 * With a database of its own it does not stand by. With one that several gateways have it does
 * until it leads, and when another one has taken over it stops: ERR_MOVED, and may be started
 * again at once.
 *
 * Everything happens on the given libuv loop; the gateway is gone when on_stopped was
 * called and the loop has run on until it had nothing left to do.
 *
 * A process has one thread for its gateways: metrics, the log level, the caches of recurring
 * texts and the key of hashes are common to all of them, and no lock guards them. It ignores
 * SIGPIPE, as main.c does. */
#pragma once

#include <stdio.h>

#include "base/error.h"

struct config;
struct gateway;
struct ring;
struct uv_loop_s;

struct gateway_events {
    /* Listening and loaded: port is the one in use. NULL: nobody wants to know. */
    void (*on_ready)(void *owner, int port);
    /* Listening, and another gateway leads. NULL: nobody wants to know. */
    void (*on_standby)(void *owner);
    /* The last call. reason.code OK: drained; else why it could not start or go on. */
    void (*on_stopped)(void *owner, const struct failure *reason);
    void *owner;
};

/* What a start would refuse before it looks at the data directory: the keys of the environment,
 * listening for others without them, and certificates that are of no use. ERR_INVALID. */
enum err gateway_check(const struct config *config, struct failure *why);

/* ERR_INVALID, ERR_STORE with the reason: nothing was started, no event comes. first_keys
 * is where the first start on an empty data directory prints the keys it made. ring: of net/ring.h,
 * for frames of WebSockets, the caller's until the gateway has stopped; NULL: none. */
enum err gateway_start(struct uv_loop_s *loop, const struct config *config,
                       const struct gateway_events *events, FILE *first_keys,
                       struct ring *ring, struct gateway **gateway, struct failure *why);

/* The config that gateway_start was given has changed, by config_take. Takes over the certificates,
 * which are those that it names. */
struct certificates;
void gateway_reload(struct gateway *gateway, struct certificates *certificates);

/* Refuses what is new, finishes what is under way, at most for the drain timeout. */
void gateway_drain(struct gateway *gateway);

/* Stops at once, without waiting for anybody. */
void gateway_stop(struct gateway *gateway);

/* Subcommands, which are run of their rows (server/config/subcommand.h). */

/* Carries out a subcommand on accounts: the running gateway is asked for it over its admin socket;
 * when none runs, the data directory is opened. out gets what there is to read. */
enum err gateway_command(const struct config *config, FILE *out, struct failure *why);

/* The same of `runcast dashboard`, whose link is opened, too, where there is a desktop. */
enum err gateway_dashboard(const struct config *config, FILE *out, struct failure *why);

/* On the data directory as a whole, in this process, whether a gateway serves or not.
 * ERR_CANCELED: a signal has stopped it. db check: ERR_INVALID if it has found something. */
enum err gateway_backup(const struct config *config, FILE *out, struct failure *why);
enum err gateway_restore(const struct config *config, FILE *out, struct failure *why);
enum err gateway_db_check(const struct config *config, FILE *out, struct failure *why);
enum err gateway_db_stats(const struct config *config, FILE *out, struct failure *why);
enum err gateway_copy(const struct config *config, FILE *out, struct failure *why);

/* Gives the database of a data directory that was put back from a copy a new epoch, so that
 * clients with a position from before begin anew. out gets what `restored` prints. */
enum err gateway_restored(const struct config *config, FILE *out, struct failure *why);

/* Has the running gateway seal everything with another key: with next-encryption-key, or
 * one that it draws. out gets what the subcommand `vault rotate` prints. */
enum err gateway_rotate_vault(const struct config *config, FILE *out, struct failure *why);
