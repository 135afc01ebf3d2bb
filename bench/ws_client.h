/* ws_client.h - thousands of WebSocket connections that mostly listen.
 *
 * A connection at rest holds no buffer: all read into one, and messages are parsed where
 * they lie; only an incomplete frame is kept until the rest of it comes. Pings are
 * answered here. Compression and fragmented messages are not asked for and not read. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "options.h"
#include "poller.h"

struct ws_client;
struct ws_group;

struct ws_handler {
    void (*on_open)(struct ws_client *ws);
    /* payload is valid during the call. */
    void (*on_message)(struct ws_client *ws, struct slice payload, int64_t received_ns);
    /* reason is the server's sentence, or what broke; the connection is closed. */
    void (*on_closed)(struct ws_client *ws, unsigned code, struct slice reason);
};

enum ws_state { WS_CLOSED, WS_CONNECTING, WS_UPGRADING, WS_OPEN };

struct ws_client {
    struct source source;
    struct ws_group *group;
    enum ws_state state;
    struct buf rest; /* bytes of an incomplete frame or of the reply to the upgrade */
};

/* What the connections of one process share. */
struct ws_group {
    struct poller *poller;
    const struct options *options;
    const struct ws_handler *handler;
    char *input;         /* everybody reads into it */
    uint64_t reads;      /* receive calls that brought something */
    uint64_t bytes;      /* received by open connections */
    unsigned source_net; /* second and third byte of the 127.x.y.z that clients come from */
};

/* Options and handler are borrowed. */
void ws_group_init(struct ws_group *group, struct poller *poller,
                   const struct options *options, const struct ws_handler *handler);
void ws_group_finish(struct ws_group *group);

/* Begins to connect. number spreads the connections over loopback addresses, so that one
 * address does not run out of ports. on_open or on_closed comes later. */
void ws_client_open(struct ws_client *ws, struct ws_group *group, size_t number);

/* Sends one text message. */
void ws_client_send(struct ws_client *ws, struct slice text);

/* Says goodbye and closes; on_closed does not come. */
void ws_client_close(struct ws_client *ws);
