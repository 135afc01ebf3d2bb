/* client_conn.h - one connection that carries request after request; private to client.
 *
 *   opening ─► carrying ─► idle ─► carrying ─► … ─► closing ─► gone
 *
 * It reports the outcome of each request, and its owner decides what to do next. */
#pragma once

#include "net/client/channel.h"
#include "net/client/job.h"

struct client_conn;

struct client_conn_ops {
    /* Called when the connection is done with the request. OK: the response is complete;
     * otherwise the error. The connection is then idle, or closes. */
    void (*on_off)(struct client_conn *client_conn, struct job *job, enum err error,
                   const char *why);
    /* The connection is closed; its memory belongs to the owner again. */
    void (*on_gone)(struct client_conn *client_conn);
};

struct client_conn {
    struct channel channel;
    struct loop *loop;
    const struct client_conn_ops *ops;
    struct fetcher *fetcher;
    struct job *job; /* NULL: idle, or closing */
    bool is_used;    /* it has carried an earlier request */
    bool is_sent;    /* the current request was sent completely */
    bool is_closing;
    int64_t idle_ms;
    struct deadline deadline;
    struct list link; // fetcher::client_conns
};

/* Opens a connection in zeroed memory of the owner, with the first request. */
void client_conn_open(struct client_conn *client_conn,
                      const struct channel_options *options,
                      const struct client_conn_ops *ops, struct job *job);

static inline bool client_conn_is_idle(const struct client_conn *client_conn)
{
    return !client_conn->job && !client_conn->is_closing;
}

/* Sends the next request; the connection must be idle. */
void client_conn_send(struct client_conn *client_conn, struct job *job);

/* Abandons the request, without on_off, and closes the connection. */
void client_conn_close(struct client_conn *client_conn);

/* Continues after a file was read or written. */
void client_conn_resume(struct client_conn *client_conn);
