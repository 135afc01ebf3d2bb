/* serving.h - sends what this gateway applies to its followers, while it leads.
 *
 *   source (core/replication) ─► frames ─► encoded once, in order ─► end of the turn:
 *                                          one message for all followers (peer_server.h)
 *
 * It listens at peer-listen from the start of the gateway, and refuses peers until it is
 * told that this gateway leads and has all runs in memory. */
#pragma once

#include "core/replication/source.h"
#include "server/peers/peer_server.h"

struct serving;

struct serving_options {
    const struct listen_options *address; /* borrowed until serving_create returns */
    struct certificates *certificates;    /* a reference is taken; NULL: no TLS */
    const struct vault *vault;            /* borrowed */
    void (*closed)(void *owner);
    void *owner;
    struct http_handler calls; /* peer_server_options::calls */
    void *calls_owner;
};

/* ERR_INVALID, with the reason: bad address, port in use. */
enum err serving_create(struct loop *loop, const struct serving_options *options,
                        struct serving **serving, struct failure *why);

/* Followers are accepted from now on. send, is_slow, allowance
 * and end of the options are ignored. */
void serving_begin(struct serving *serving, const struct source_options *options);

/* Returns the source, which needs each change (source_apply); NULL before serving_begin. */
struct source *serving_source(struct serving *serving);

/* Sends a frame to one follower, which has not left. */
void serving_send(struct serving *serving, struct source_follower *to,
                  const struct repl_frame *frame);

/* The lead has ended: refuses peers, and ends the connections of all followers. */
void serving_end(struct serving *serving, const char *why);

/* Sets the certificates of connections accepted from now on; takes a reference. */
void serving_show(struct serving *serving, struct certificates *certificates);

/* Closes everything, and calls closed; the memory is freed once that has returned. */
void serving_close(struct serving *serving);
