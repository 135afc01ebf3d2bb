/* http_client.h - keep-alive connections that each carry one HTTP/1.1 request at a time.
 *
 * The caller takes an idle connection and sends. It gets the response in on_reply, where it
 * may send the next request on the same connection. If the server has closed a connection,
 * the next send reopens it. No redirects, no pipelining. */
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
    struct buf body;  /* of a chunked response, joined */
    struct list link; // http_client::idle

    /* The caller's, from request to response. */
    int64_t intended_ns;
    uint64_t index;
    int step;
};

struct http_reply {
    int status;               /* 0: the connection broke before the response was complete */
    struct slice body;        /* valid during on_reply; with status 0 an error text */
    struct slice retry_after; /* the header's value; ptr NULL: missing */
};

typedef void http_reply_fn(struct http_conn *conn, const struct http_reply *reply);

struct http_client {
    struct poller *poller;
    const struct options *options;
    http_reply_fn *on_reply;
    struct http_conn *conns;
    size_t count;
    size_t outstanding; /* requests without a response */
    struct list idle;
};

/* Borrows options until http_client_finish. */
void http_client_init(struct http_client *client, struct poller *poller,
                      const struct options *options, size_t count, http_reply_fn *on_reply);
void http_client_finish(struct http_client *client);

/* Returns a connection without a request, or NULL if all are busy. */
struct http_conn *http_client_idle(struct http_client *client);

/* Requires an idle connection. body absent: none is sent. */
void http_conn_send(struct http_conn *conn, const char *method, const char *path,
                    struct slice body);

/* The same with the body's media type (http_conn_send uses application/json). */
void http_conn_send_as(struct http_conn *conn, const char *method, const char *path,
                       const char *media_type, struct slice body);

/* Sends one request on a separate connection and waits at most a minute; for use before and
 * after a measurement. Returns the status and appends the body to reply. */
int http_call(const struct options *options, const char *method, const char *path,
              struct slice body, struct buf *reply);
