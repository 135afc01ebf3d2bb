/* gateway_notices.h - the socket on which the gateway names runs that have news.
 *
 *   opened ─► namespace /worker ─► on_open: who is executed here is subscribed ─► on_notice …
 *      ▲                                    │
 *      └──────────── a pause ◄──────────────┘ closed, for whatever reason
 *
 * Without it everything goes on, in steps of the controllers' polls. */
#pragma once

#include "net/client/websocket.h"

struct gateway_notices;

struct gateway_notices_events {
    /* gateway_notices_follow for every run that is here. */
    void (*on_open)(void *owner);
    void (*on_notice)(void *owner, struct slice run);
};

struct gateway_notices_options {
    const struct url *url;
    const struct trust *trust;
    struct slice credential; /* "Bearer …" */
};

/* url, trust and credential outlive it. */
struct gateway_notices *
gateway_notices_create(struct loop *loop, const struct gateway_notices_options *options,
                       const struct gateway_notices_events *events, void *owner);

/* Nothing happens while the socket is not open. */
void gateway_notices_follow(struct gateway_notices *notices, const char *run);
void gateway_notices_leave(struct gateway_notices *notices, const char *run);

/* closed is called when it is gone. */
void gateway_notices_close(struct gateway_notices *notices, void (*closed)(void *owner));
