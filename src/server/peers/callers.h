/* callers.h - the leader's end of forwarded calls: which of its connections may send them.
 *
 *   stranger ─► opened ─► proved within 5 s: its calls reach the API ─► on_session_end
 *       └─ anything else: refused, and closed
 *
 * A part of the server at peer-listen (peer_server.h). A stranger gets only random bytes
 * and the id of this gateway. */
#pragma once

#include "base/loop.h"
#include "base/vault/vault.h"
#include "net/http/http_session.h"

struct callers;
struct server;

enum {
    CALLERS_STRANGERS_MAX = 256, /* for one more, the oldest is closed */
    CALLERS_MAX = 16 * 1024,     /* that have proved the key; further ones get 429 */
};

struct callers_options {
    const struct vault *vault; /* borrowed */
    /* Returns our store_gateway::id; 0: this gateway does not lead, so calls get 503. */
    uint64_t (*leader_id)(void *owner);
    void *owner;
    unsigned most; /* for tests; 0: CALLERS_MAX */
};

/* server: also gets multiplexed calls (muxed_calls.h). */
struct callers *callers_create(struct loop *loop, struct server *server,
                               const struct callers_options *options);

/* Requires that all sessions have ended. */
void callers_destroy(struct callers *callers);

/* The head of a request has arrived. Returns true if it is a call of a follower: it belongs
 * to its client from now on (exchange::relayed). Otherwise it is a greeting, or was
 * answered. */
bool callers_take_head(struct callers *callers, struct exchange *x);

/* A whole request has arrived that is not a call: a greeting, or it asks for a
 * multiplexed connection. */
void callers_take_greeting(struct callers *callers, struct exchange *x);

void callers_on_session_end(struct http_session *session);
