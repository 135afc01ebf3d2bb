/* gateway.h - start, drain and stop a gateway inside any process.
 *
 *   gateway_start ─► loading ─► ready ─ gateway_drain ─► draining ─► on_stopped
 *                       └── cannot: on_stopped with the reason
 *
 * Everything happens on the given libuv loop; the gateway is gone when on_stopped was
 * called and the loop has run on until it had nothing left to do. */
#pragma once

#include <stdio.h>

#include "base/error.h"

struct config;
struct gateway;
struct uv_loop_s;

struct gateway_events {
    /* Listening and loaded: port is the one in use. NULL: nobody wants to know. */
    void (*on_ready)(void *owner, int port);
    /* The last call. reason.code OK: drained; else why it could not start or go on. */
    void (*on_stopped)(void *owner, const struct failure *reason);
    void *owner;
};

/* What a start would refuse before it looks at the data directory: the keys of the environment,
 * and listening for others without them. ERR_INVALID. */
enum err gateway_check(const struct config *config, struct failure *why);

/* ERR_INVALID, ERR_STORE with the reason: nothing was started, no event comes. first_keys
 * is where the first start on an empty data directory prints the keys it made. */
enum err gateway_start(struct uv_loop_s *loop, const struct config *config,
                       const struct gateway_events *events, FILE *first_keys,
                       struct gateway **gateway, struct failure *why);

/* Refuses what is new, finishes what is under way, at most for the drain timeout. */
void gateway_drain(struct gateway *gateway);

/* Stops at once, without waiting for anybody. */
void gateway_stop(struct gateway *gateway);

/* A subcommand on accounts, config's words: done by the running gateway, asked over its
 * admin socket, else by opening the data directory. out gets what there is to read. ERR_USAGE: its words
 * are wrong. */
enum err gateway_command(const struct config *config, FILE *out, struct failure *why);

/* The data directory is a copy that was put back: its database gets a new epoch, so that
 * clients with a position of its other life begin anew. What `restored` prints. */
enum err gateway_restored(const struct config *config, FILE *out, struct failure *why);

/* Has the running gateway seal everything with another key: with next-encryption-key, or
 * one that it draws. What the subcommand `vault rotate` prints. */
enum err gateway_rotate_vault(const struct config *config, FILE *out, struct failure *why);
