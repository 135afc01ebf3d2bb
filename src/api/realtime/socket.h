/* socket.h - one WebSocket client of runs.v1: its identity, feed and deadlines. */
#pragma once

#include "api/request/call.h"
#include "api/request/connection_limit.h"
#include "core/live/feed.h"
#include "core/wire/wire.h"
#include "net/http/ws.h"

/* All sockets of the gateway. */
struct sockets {
    struct loop *loop;
    struct list all; // socket::link
    size_t count;
    uint32_t kind;         /* timer kind of sockets */
    uint32_t opening_kind; /* timer kind of openings that wait for a doubt to end */
    /* When sockets opened during a drain must leave, if the next process follows; monotonic
     * ms; 0: it does not, or there is no drain. */
    int64_t leave_at;
    uint32_t late; /* how many were opened during that drain */
};

/* When a socket must leave; monotonic ms. */
struct socket_leaving {
    /* When `drain` is sent to the client; 0: it was sent, or is not needed. */
    int64_t drain_at;
    int64_t return_at; /* when the client should reconnect */
    int64_t leave_at;
};

struct socket {
    struct feed feed; /* valid once welcomed */
    struct ws *ws;
    struct api *api;
    char *branch;              /* x-trigger-branch of the upgrade; NULL: none */
    struct bytes *peer;        /* the client's address */
    struct identity *identity; /* NULL: hello must bring a token */
    struct seat seat;          /* taken once there is an identity */
    struct timer timer;        /* for the nearest of the deadlines below */
    /* Monotonic ms; when the time for hello, or the token, expires; 0: never. */
    int64_t ends_at;
    int64_t ping_at;
    struct socket_leaving *leaving; /* deadlines of a drain; NULL: none */
    uint64_t pinged_seq;            /* position in the last ping message */
    uint32_t unread;                /* bytes of responses since nothing was unsent */
    enum encoding encoding : 8;
    bool hello_due : 1;   /* hello must come before ends_at */
    bool warning_due : 1; /* the warning that the token expires is still to be sent */
    bool welcomed : 1;
    bool floor_due : 1;    /* the floor has moved since the client was last informed */
    bool is_confirmed : 1; /* the token of the message that is taken has waited */
    /* Ignored parameters of the upgrade, until they are reported; NULL: none. */
    struct tag_list *ignored;
    struct opening *openings; /* subscriptions not begun yet, newest first */
    /* Messages that wait because the token of the first may be new; NULL: none. */
    struct token_waiting *waiting;
    struct list link; // sockets::all
};

/* Begin the subscription or live list that a message requests. May take what the message
 * owns. */
void socket_sub(struct socket *socket, struct wire_message *sub);
void socket_watch(struct socket *socket, struct wire_message *watch);

/* Drops the opening with this id. Returns false if there is none. */
bool socket_drop_opening(struct socket *socket, int64_t id);

/* Callback of an opening's timer: it has waited too long for a doubt to end. */
void socket_opening_is_late(struct timer *timer);

/* Drops all subscriptions and live lists that have not begun yet. */
void socket_forget_openings(struct socket *socket);

/* Wraps and sends a message of wire.h, and clears the buffer. */
void socket_send(struct socket *socket, struct buf *message);

/* The same for a response to a message from the client: closes the socket if too many of
 * them are unread. */
void socket_answer(struct socket *socket, struct buf *message);

/* Sends an error about a message from the client; id -1: it does not concern a
 * subscription. */
void socket_refuse(struct socket *socket, int64_t id, const char *code, const char *text);
