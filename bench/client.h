/* client.h - thousands of connections that mostly listen, over any transport.
 *
 *   connect ──► with https the handshake ──► transport->connected: sends what asks for the topic
 *   readable ─► one recv into group->input ─► transport->take ─► handler->on_message
 *                                               └─ what is incomplete goes to client->rest
 *
 * A connection at rest holds no buffer: all read into one, and messages are parsed where
 * they lie; only what is incomplete is kept until the rest of it comes. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "options.h"
#include "poller.h"

enum {
    GOING_AWAY = 1001, /* the server has answered, and closes */
    ABNORMAL = 1006,   /* closed without a code of the server's */
};

struct client;
struct client_group;
struct peer;

/* What the client wants to hear of: {"tags", "x"}, {"run", "run_x"}, {"all", "1"}. */
struct wish {
    char name[8];
    char value[64];
};

struct client_handler {
    /* payload is valid during the call. */
    void (*on_message)(struct client *client, struct slice payload, int64_t received_ns);
    /* reason is the server's sentence, or what broke; the connection is closed. */
    void (*on_closed)(struct client *client, unsigned code, struct slice reason);
};

struct transport {
    const char *name; /* of --transport */
    void (*connected)(struct client *client);
    /* Takes what is complete in front of the input: the bytes of it, 0 for nothing. */
    size_t (*take)(struct client *client, struct slice in, int64_t received_ns);
    void (*leave)(struct client *client); /* says goodbye; NULL: nothing to say */
};

extern const struct transport ws_transport;    /* runs.v1 */
extern const struct transport poll_transport;  /* as the official SDKs do */
extern const struct transport event_transport; /* runs.v1 as text/event-stream */

/* The transport of that name; ends the program for any other name. */
const struct transport *client_transport(const char *name);

enum client_state { CLIENT_CLOSED, CLIENT_CONNECTING, CLIENT_BEGINNING, CLIENT_OPEN };

struct client {
    struct source source;
    struct client_group *group;
    enum client_state state;
    size_t number; /* decides which loopback address it comes from */
    struct wish wish;
    struct buf rest; /* bytes of what is not complete */
    struct buf line; /* of an event stream: a line that goes on in another chunk; of a peer:
                      * a word that goes on in another frame */

    /* Of a long poll: what the server said last, verbatim. Of an event stream: offset is the
     * last id. */
    char offset[64], handle[64], cursor[24];
    bool live;

    /* Of a WebSocket, kept by the handler for who comes back. epoch "": it has none yet. */
    char epoch[24];
    uint64_t seq, base;
    int64_t
        return_ms; /* when to come back after the connection has ended, as the server said */
};

/* What the connections of one process share. */
struct client_group {
    struct poller *poller;
    const struct options *options;
    const struct transport *transport;
    const struct peer *peer; /* the server is this one (peer.h); NULL: it speaks runs.v1 */
    const struct client_handler *handler;
    char *input;         /* everybody reads into it */
    uint64_t opened;     /* connections that the server has accepted as what they are */
    uint64_t reads;      /* receive calls that brought something */
    uint64_t bytes;      /* received */
    unsigned source_net; /* second and third byte of the 127.x.y.z that clients come from */
};

/* Options and handler are borrowed. Ends the program for an unknown transport. */
void client_group_init(struct client_group *group, struct poller *poller,
                       const struct options *options, const struct client_handler *handler);
void client_group_finish(struct client_group *group);

/* Begins to connect. number spreads the connections over loopback addresses, so that one
 * address does not run out of ports. */
void client_open(struct client *client, struct client_group *group, size_t number,
                 const struct wish *wish);

/* Connects anew a client whose connection has ended, to go on where it was. */
void client_come_back(struct client *client);

/* Says goodbye and closes; on_closed does not come. */
void client_close(struct client *client);

/* For transports: sends all of it, which is small. */
void client_send(struct client *client, struct slice bytes);

/* For transports: the connection is of no use any more; on_closed comes from inside. */
void client_fail(struct client *client, unsigned code, struct slice reason);
