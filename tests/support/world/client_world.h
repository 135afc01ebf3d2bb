/* client_world.h - a client on its own loop, and the far side, which the test plays.
 *
 * The far side is a listening socket of 127.0.0.1 and the connections that come to it. None of
 * them blocks; the test turns the loop. With a certificate it speaks TLS. */
#pragma once

#include <stdbool.h>
#include <uv.h>

#include "base/buf.h"
#include "base/loop.h"
#include "net/client/fetcher.h"
#include "net/client/websocket.h"

struct certificate;
struct ssl_st;
struct ssl_ctx_st;

struct client_world {
    uv_loop_t uv;
    struct loop *loop;
    int listener;
    int port;
    struct url url; /* http://127.0.0.1:port, unless the test says otherwise */
    struct ssl_ctx_st *tls;
    struct fetcher *fetcher; /* NULL: none was made */
    bool closed;
};

/* A connection, on the far side. */
struct far {
    int fd;
    struct ssl_st *tls;
    struct buf got;
    bool ended, reset;
};

/* A request, and what has become of it. */
struct probe {
    struct fetch fetch; /* what is set before probe_begin is sent */
    unsigned done;
    enum err error;
    char why[320];
    int status;
    struct buf body;
    struct buf header; /* of the name that probe_header says */
    const char *probe_header;
};

void client_world_open(struct client_world *world);

/* Asserts that no handle is left; the fetcher is closed before, and what it carries ends. */
void client_world_close(struct client_world *world);

/* From now on the far side speaks TLS and shows the certificate; the URL is https. */
void client_world_secure(struct client_world *world, const struct certificate *certificate,
                         const char *host);

/* Makes the fetcher; its URL is the world's. */
void client_world_fetcher(struct client_world *world, struct fetcher_options options);

typedef bool client_condition(void *owner);
void client_world_turn(struct client_world *world);
void client_world_until(struct client_world *world, client_condition *holds, void *owner);

/* The next connection, which is awaited. */
void far_accept(struct client_world *world, struct far *far);
/* Nobody else has connected. */
bool far_is_alone(struct client_world *world);
void far_close(struct far *far);
/* By a reset. */
void far_break(struct far *far);
/* Takes in what has come; TLS goes on. */
void far_read(struct far *far);
bool far_has(struct far *far, const char *text);
void far_await(struct client_world *world, struct far *far, const char *text);
void far_await_end(struct client_world *world, struct far *far);
void far_send(struct client_world *world, struct far *far, struct slice bytes);
void far_say(struct client_world *world, struct far *far, const char *text);

/* With target and method in it already: begins; asserts that it is not refused. */
void probe_begin(struct client_world *world, struct probe *probe, const char *target);
/* Awaits the outcome. */
void probe_await(struct client_world *world, struct probe *probe);
/* And asserts what it is: status and body, or the error. */
void probe_expect(struct client_world *world, struct probe *probe, int status,
                  const char *body);
void probe_expect_error(struct client_world *world, struct probe *probe, enum err error);
void probe_finish(struct probe *probe);
