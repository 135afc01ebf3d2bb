/* http_client.h - keep-alive connections that each carry one HTTP/1.1 request at a time.
 *
 * The caller takes an idle connection, sends, and hears of the reply in on_reply, from
 * where it may send the next request on the same connection. A connection the server has
 * closed is opened again by the next send. No redirects, no pipelining. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/list.h"
#include "options.h"
#include "poller.h"

struct http_client;

struct http_conn {
    struct source source;
    struct http_client *client;
    bool busy;
    bool opening;
    struct buf out;
    size_t sent; /* bytes of out */
    struct buf in;
    struct buf body;  /* of a chunked reply, put together */
    struct list link; // http_client::idle

    /* The caller's, from send to reply. */
    int64_t intended_ns;
    uint64_t index;
    int step;
};

struct http_reply {
    int status;               /* 0: the connection broke before the reply was complete */
    struct slice body;        /* valid during on_reply; with status 0 a sentence */
    struct slice retry_after; /* the header's value; ptr NULL: there is none */
};

typedef void http_reply_fn(struct http_conn *conn, const struct http_reply *reply);

struct http_client {
    struct poller *poller;
    const struct options *options;
    http_reply_fn *on_reply;
    struct http_conn *conns;
    size_t count;
    size_t outstanding; /* requests without a reply */
    struct list idle;
};

/* Options are borrowed until http_client_finish. */
void http_client_init(struct http_client *client, struct poller *poller,
                      const struct options *options, size_t count, http_reply_fn *on_reply);
void http_client_finish(struct http_client *client);

/* A connection without a request, or NULL when all are busy. */
struct http_conn *http_client_idle(struct http_client *client);

/* The connection is idle. An absent body: none is sent. */
void http_conn_send(struct http_conn *conn, const char *method, const char *path,
                    struct slice body);

/* The same with the body's media type (http_conn_send says application/json). */
void http_conn_send_as(struct http_conn *conn, const char *method, const char *path,
                       const char *media_type, struct slice body);

/* One request on a connection of its own, waited for at most a minute: for what happens
 * before and after a measurement. Returns the status; the reply's body is appended. */
int http_call(const struct options *options, const char *method, const char *path,
              struct slice body, struct buf *reply);
