/* gateway_notices.h - the socket on which the gateway names runs that have changed.
 *
 *   opened ─► namespace /worker ─► on_open: subscribe to the runs here ─► on_notice …
 *      ▲                                    │
 *      └──────────── a pause ◄──────────────┘ closed, for any reason
 *
 * Without this socket, runs still make progress, but only when their controllers poll. */
#pragma once

#include "net/client/websocket.h"

struct gateway_notices;

struct gateway_notices_events {
    /* Call gateway_notices_follow for every run on this machine. */
    void (*on_open)(void *owner);
    void (*on_notice)(void *owner, struct slice run);
};

struct gateway_notices_options {
    const struct url *url;
    const struct trust *trust;
    struct slice credential; /* "Bearer …" */
};

/* url, trust and credential must outlive it. */
struct gateway_notices *
gateway_notices_create(struct loop *loop, const struct gateway_notices_options *options,
                       const struct gateway_notices_events *events, void *owner);

/* Does nothing while the socket is not open. */
void gateway_notices_follow(struct gateway_notices *notices, const char *run);
void gateway_notices_leave(struct gateway_notices *notices, const char *run);

/* Calls closed after it was freed. */
void gateway_notices_close(struct gateway_notices *notices, void (*closed)(void *owner));
