/* socket.h - one WebSocket client of runs.v1: its identity, its feed, its deadlines. */
#pragma once

#include "api/request/call.h"
#include "api/request/connection_limit.h"
#include "core/live/feed.h"
#include "core/wire/wire.h"
#include "net/http/ws.h"

/* Every socket of the gateway. */
struct sockets {
    struct loop *loop;
    struct list all; // socket::link
    size_t count;
    uint32_t kind;         /* of their timers */
    uint32_t opening_kind; /* of those of subscriptions that wait for the end of a doubt */
    int64_t
        leave_at; /* of who comes in a drain behind which the next process follows, monotonic
                         ms; 0: there is none */
    uint32_t late; /* how many did come */
};

/* When a socket has to go; monotonic ms. */
struct socket_leaving {
    int64_t
        drain_at; /* tells the client that it should leave; 0: it was told, or may stay */
    int64_t return_at; /* what it is told then */
    int64_t leave_at;
};

struct socket {
    struct feed feed; /* once welcomed */
    struct ws *ws;
    struct api *api;
    char *branch;              /* x-trigger-branch of the upgrade; NULL: none */
    struct bytes *peer;        /* the client's address */
    struct identity *identity; /* NULL: hello must bring a token */
    struct seat seat;          /* once there is an identity */
    struct timer timer;        /* the nearest of the deadlines below */
    int64_t ends_at; /* monotonic ms; of the time for hello, or of the token's; 0: never */
    int64_t ping_at;
    struct socket_leaving *leaving; /* of a drain; NULL: it stays */
    uint64_t told;                  /* position that the last ping message named */
    uint32_t unread;                /* bytes of answers since nothing was unsent */
    enum encoding encoding : 8;
    bool hello_due : 1;   /* until ends_at */
    bool warning_due : 1; /* of the end of the token */
    bool welcomed : 1;
    bool floor_due : 1; /* the floor has moved, and the client was not told */
    struct tag_list
        *ignored; /* parameters of the upgrade, until they are told; NULL: none */
    struct opening *openings; /* subscriptions that wait for the store, the newest first */
    struct list link;         // sockets::all
};

/* A message asks for a subscription or a live list; its content may be taken over. */
void socket_sub(struct socket *socket, struct wire_message *sub);
void socket_watch(struct socket *socket, struct wire_message *watch);

/* Ends an opening that has not begun. Returns false if no opening has this id. */
bool socket_drop_opening(struct socket *socket, int64_t id);

/* The timer is an opening's, which has waited for the end of a doubt for too long. */
void socket_opening_is_late(struct timer *timer);

/* Subscriptions that wait for the store, or for the end of a doubt, are forgotten. */
void socket_forget_openings(struct socket *socket);

/* A message of wire.h, wrapped and sent; the buffer is cleared. */
void socket_send(struct socket *socket, struct buf *message);

/* The same of what the client has asked for by a message of its own: with too many of them
 * unread the socket is closed. */
void socket_answer(struct socket *socket, struct buf *message);

/* An error about a message of the client's; id -1: about none of its subscriptions. */
void socket_refuse(struct socket *socket, int64_t id, const char *code, const char *text);
