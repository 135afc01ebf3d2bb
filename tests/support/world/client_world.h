/* client_world.h - a client on its own loop, and the far side, which the test simulates.
 *
 * The far side is a listening socket of 127.0.0.1 and the connections to it. None of
 * them blocks; the test runs the turns of the loop. With a certificate it uses TLS. */
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
    struct url url; /* http://127.0.0.1:port, unless the test sets another */
    struct ssl_ctx_st *tls;
    struct fetcher *fetcher; /* NULL: not made yet */
    bool closed;
};

/* The far side of a connection. */
struct far {
    int fd;
    struct ssl_st *tls;
    struct buf got;
    bool ended, reset;
};

/* A request and its outcome. */
struct probe {
    struct fetch fetch; /* probe_begin sends the members set before it */
    unsigned done;
    enum err error;
    char why[320];
    int status;
    struct buf body;
    struct buf header; /* the header that probe_header names */
    const char *probe_header;
};

void client_world_open(struct client_world *world);

/* Closes the fetcher, which ends its requests. Asserts that no handle is left. */
void client_world_close(struct client_world *world);

/* From now on the far side uses TLS with the certificate; the URL is https. */
void client_world_secure(struct client_world *world, const struct certificate *certificate,
                         const char *host);

/* Creates the fetcher; its URL is the world's. */
void client_world_fetcher(struct client_world *world, struct fetcher_options options);

typedef bool client_condition(void *owner);
void client_world_turn(struct client_world *world);
void client_world_until(struct client_world *world, client_condition *holds, void *owner);

/* Waits for the next connection. */
void far_accept(struct client_world *world, struct far *far);
/* Returns true if there is no other connection. */
bool far_is_alone(struct client_world *world);
void far_close(struct far *far);
/* Resets the connection. */
void far_break(struct far *far);
/* Reads what has arrived; TLS makes progress. */
void far_read(struct far *far);
bool far_has(struct far *far, const char *text);
void far_await(struct client_world *world, struct far *far, const char *text);
void far_await_end(struct client_world *world, struct far *far);
void far_send(struct client_world *world, struct far *far, struct slice bytes);
void far_say(struct client_world *world, struct far *far, const char *text);

/* Sends bytes from the client's socket, its only one, until the system takes no more. */
void far_fill(const struct client_world *world, const struct far *far);

/* Requires target and method in probe->fetch. Begins the request, and asserts that it is
 * not refused. */
void probe_begin(struct client_world *world, struct probe *probe, const char *target);
/* Waits for the outcome. */
void probe_await(struct client_world *world, struct probe *probe);
/* Waits, and asserts the outcome: status and body, or the error. */
void probe_expect(struct client_world *world, struct probe *probe, int status,
                  const char *body);
void probe_expect_error(struct client_world *world, struct probe *probe, enum err error);
void probe_finish(struct probe *probe);
