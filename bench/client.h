/* client.h - thousands of connections that mostly receive, over any transport.
 *
 *   connect ──► with https the handshake ──► transport->connected: sends the subscription
 *   readable ─► one recv into group->input ─► transport->take ─► handler->on_message
 *                                               └─ an incomplete rest goes to client->rest
 *
 * An idle connection has no buffer: all read into one, and messages are parsed in place;
 * only an incomplete rest is kept until more arrives. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "options.h"
#include "poller.h"

enum {
    GOING_AWAY = 1001, /* the server has responded, and closes */
    ABNORMAL = 1006,   /* closed without a code from the server */
};

struct client;
struct client_group;
struct peer;

/* The subscription of a client: {"tags", "x"}, {"run", "run_x"}, {"all", "1"}. */
struct wish {
    char name[8];
    char value[64];
};

struct client_handler {
    /* payload is valid during the call. */
    void (*on_message)(struct client *client, struct slice payload, int64_t received_ns);
    /* reason: the server's text, or the local error. The connection is closed. */
    void (*on_closed)(struct client *client, unsigned code, struct slice reason);
};

struct transport {
    const char *name; /* of --transport */
    void (*connected)(struct client *client);
    /* Takes the complete part at the front of the input; returns its length, 0 if there is
     * none. */
    size_t (*take)(struct client *client, struct slice in, int64_t received_ns);
    void (*leave)(struct client *client); /* sends a close message; NULL: none */
};

extern const struct transport ws_transport;    /* runs.v1 */
extern const struct transport poll_transport;  /* as the official SDKs do */
extern const struct transport event_transport; /* runs.v1 as text/event-stream */

/* Returns the transport of that name; exits the program if the name is unknown. */
const struct transport *client_transport(const char *name);

enum client_state { CLIENT_CLOSED, CLIENT_CONNECTING, CLIENT_BEGINNING, CLIENT_OPEN };

struct client {
    struct source source;
    struct client_group *group;
    enum client_state state;
    size_t number; /* decides its loopback source address */
    struct wish wish;
    struct buf rest; /* an incomplete rest of input */
    /* The incomplete rest of a line of an event stream, or of a peer's message. */
    struct buf line;

    /* Position of a long poll, from the last response, verbatim. offset is also the last id of an
     * event stream. */
    char offset[64], handle[64], cursor[24];
    bool live;

    /* Position of a WebSocket to resume from, kept by the handler. epoch "": none
     * yet. */
    char epoch[24];
    uint64_t seq, base;
    int64_t return_ms; /* how long to wait before a reconnect, as the server requested */
};

/* Shared by the connections of one process. */
struct client_group {
    struct poller *poller;
    const struct options *options;
    const struct transport *transport;
    const struct peer *peer; /* the server (peer.h); NULL: it speaks runs.v1 */
    const struct client_handler *handler;
    char *input;         /* all connections read into it */
    uint64_t opened;     /* connections whose upgrade or request was accepted */
    uint64_t reads;      /* receive calls that returned data */
    uint64_t bytes;      /* received */
    unsigned source_net; /* second and third byte of the clients' addresses 127.x.y.z */
};

/* Borrows options and handler. Ends the program if the transport is unknown. */
void client_group_init(struct client_group *group, struct poller *poller,
                       const struct options *options, const struct client_handler *handler);
void client_group_finish(struct client_group *group);

/* Begins to connect. number spreads connections over loopback addresses, so that no address
 * runs out of ports. */
void client_open(struct client *client, struct client_group *group, size_t number,
                 const struct wish *wish);

/* Reconnects a client whose connection was closed; it resumes from its position. */
void client_come_back(struct client *client);

/* Sends a close message and closes; on_closed is not called. */
void client_close(struct client *client);

/* For transports: sends all of it, which must be small. */
void client_send(struct client *client, struct slice bytes);

/* For transports: closes the connection and calls on_closed before it returns. */
void client_fail(struct client *client, unsigned code, struct slice reason);
