/* http_client.c - keep-alive connections that each carry one HTTP/1.1 request at a time.
 *
 *   idle ── send ──► busy: connect if needed, write ──► read head, body ──► on_reply, idle
 *                     └── the peer closed or refused ──► on_reply with status 0, idle */
#include "http_client.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "http_head.h"
#include "secure.h"

enum { READ_SIZE = 65536 };

static const int64_t CALL_TIMEOUT_NS = 60000000000;

/* A client for one call. */
struct call {
    struct http_client client;
    struct buf *reply;
    int status;
    bool done;
};

static void on_ready(struct source *source, uint32_t events);

void http_client_init(struct http_client *client, struct poller *poller,
                      const struct options *options, size_t count, http_reply_fn *on_reply)
{
    *client = (struct http_client){ .poller = poller, .options = options, .count = count };
    client->on_reply = on_reply;
    client->conns = mem_new_array(struct http_conn, count);
    list_init(&client->idle);
    for (size_t i = 0; i < count; i++) {
        struct http_conn *conn = &client->conns[i];
        conn->client = client;
        conn->source = (struct source){ .fd = -1, .ready = on_ready };
        list_append(&client->idle, &conn->link);
    }
}

void http_client_finish(struct http_client *client)
{
    for (size_t i = 0; i < client->count; i++) {
        struct http_conn *conn = &client->conns[i];
        poller_close(&conn->source);
        buf_finish(&conn->out);
        buf_finish(&conn->in);
        buf_finish(&conn->body);
    }
    free(client->conns);
}

struct http_conn *http_client_idle(struct http_client *client)
{
    if (list_empty(&client->idle))
        return NULL;
    return container_of(client->idle.next, struct http_conn, link);
}

static void finish_request(struct http_conn *conn, const struct http_reply *reply)
{
    conn->busy = false;
    conn->client->outstanding--;
    list_append(&conn->client->idle, &conn->link);
    conn->client->on_reply(conn, reply);
}

static void break_off(struct http_conn *conn)
{
    poller_close(&conn->source);
    buf_clear(&conn->in);
    struct http_reply none = { .body = SLICE("no reply: nothing listens at --url, or the "
                                             "connection broke") };
    if (conn->busy)
        finish_request(conn, &none);
}

static void watch(struct http_conn *conn)
{
    bool writing = conn->sent < conn->out.len || conn->opening;
    poller_change(conn->client->poller, &conn->source,
                  writing ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

/* Returns false if the connection broke. */
static bool write_some(struct http_conn *conn)
{
    while (conn->sent < conn->out.len) {
        ssize_t n = secure_send(&conn->source, conn->out.ptr + conn->sent,
                                conn->out.len - conn->sent);
        if (n < 0)
            return errno == EAGAIN;
        conn->sent += (size_t)n;
    }
    return true;
}

static void open_socket(struct http_conn *conn)
{
    struct http_client *client = conn->client;
    int on = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        fatal("cannot open a socket: %s", strerror(errno));
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    conn->source.fd = fd;
    conn->opening = true;
    const struct sockaddr_in *address = &client->options->address;
    if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) &&
        errno != EINPROGRESS)
        fatal("cannot connect to %s: %s", client->options->host, strerror(errno));
    poller_add(client->poller, &conn->source, EPOLLIN | EPOLLOUT);
}

void http_conn_send_as(struct http_conn *conn, const char *method, const char *path,
                       const char *media_type, struct slice body)
{
    const struct options *options = conn->client->options;
    buf_clear(&conn->out);
    conn->sent = 0;
    buf_print(&conn->out, "%s %s HTTP/1.1\r\nhost: %s\r\nauthorization: Bearer %s\r\n",
              method, path, options->host, options->key);
    if (body.ptr) {
        buf_print(&conn->out, "content-type: %s\r\ncontent-length: %zu\r\n", media_type,
                  body.len);
    }
    buf_add_text(&conn->out, "\r\n");
    buf_add(&conn->out, body);

    list_remove(&conn->link);
    conn->busy = true;
    conn->client->outstanding++;
    if (conn->source.fd < 0) {
        open_socket(conn);
        return;
    }
    /* The poller reports an error, too; on_reply is never called from here. */
    write_some(conn);
    if (conn->sent < conn->out.len)
        watch(conn);
}

void http_conn_send(struct http_conn *conn, const char *method, const char *path,
                    struct slice body)
{
    http_conn_send_as(conn, method, path, "application/json", body);
}

/* Joins the chunks. Returns their length, or 0 while the last is missing. */
static size_t read_chunks(struct slice in, struct buf *body)
{
    struct slice rest = in, content;
    buf_clear(body);
    for (;;) {
        size_t used = http_chunk_read(rest, &content);
        if (used == 0)
            return 0;
        buf_add(body, content);
        rest = slice_from(rest, used);
        if (content.len == 0)
            return in.len - rest.len;
    }
}

/* Reports the response once it is complete. */
static void take_reply(struct http_conn *conn)
{
    struct http_head head;
    struct slice in = buf_slice(&conn->in);
    if (!conn->busy || !http_head_read(in, &head))
        return;
    struct http_reply reply = { .status = head.status,
                                .retry_after = http_head_field(&head, "retry-after") };
    struct slice rest = slice_from(in, head.len);
    size_t used = head.len;
    if (head.chunked) {
        size_t taken = read_chunks(rest, &conn->body);
        if (taken == 0)
            return;
        used += taken;
        reply.body = buf_slice(&conn->body);
    } else {
        if (rest.len < head.body_len)
            return;
        used += head.body_len;
        reply.body = (struct slice){ rest.ptr, head.body_len };
    }
    if (head.closes)
        poller_close(&conn->source);
    finish_request(conn, &reply);
    buf_drop(&conn->in, used);
}

static void on_ready(struct source *source, uint32_t events)
{
    struct http_conn *conn = container_of(source, struct http_conn, source);
    bool open = true;
    uint32_t wanted;
    if (conn->opening && !(events & (EPOLLHUP | EPOLLERR)) &&
        !secure_shake(source, conn->client->options, &wanted)) {
        poller_change(conn->client->poller, source, wanted);
        return;
    }
    if (conn->opening)
        events |= EPOLLOUT; /* connected, whichever event it was */
    if (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
        char *place = buf_reserve(&conn->in, READ_SIZE);
        ssize_t n = secure_recv(source, place, READ_SIZE);
        if (n > 0)
            conn->in.len += (size_t)n;
        open = n > 0 || (n < 0 && errno == EAGAIN);
    }
    if (open && events & EPOLLOUT) {
        conn->opening = false;
        open = write_some(conn);
        if (open)
            watch(conn);
    }
    if (!open) {
        break_off(conn);
        return;
    }
    take_reply(conn);
}

static void on_called(struct http_conn *conn, const struct http_reply *reply)
{
    struct call *call = container_of(conn->client, struct call, client);
    call->status = reply->status;
    call->done = true;
    buf_add(call->reply, reply->body);
}

int http_call(const struct options *options, const char *method, const char *path,
              struct slice body, struct buf *reply)
{
    struct poller poller;
    struct call call = { .reply = reply };
    int64_t until_ns = now_ns() + CALL_TIMEOUT_NS;
    poller_init(&poller);
    http_client_init(&call.client, &poller, options, 1, on_called);
    http_conn_send(http_client_idle(&call.client), method, path, body);
    while (!call.done && now_ns() < until_ns)
        poller_wait(&poller, until_ns);
    http_client_finish(&call.client);
    poller_finish(&poller);
    return call.status;
}
