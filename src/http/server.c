/* server.c - the listeners, and what all of their connections share.
 *
 *   accept ─► http_conn, or 503 and close: too many connections, or no descriptor left
 *   drain ──► replies say close
 *   close ──► listeners, connections, epoll ─► the last one out: closed, and all is freed */
#include "http/server_state.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "http/http_conn.h"
#include "http/ws_conn.h"
#include "http/ws_handshake.h"
#include "runcast/protocol.h"

enum {
    COMPLAINT_MS = 1000,
    ADMIN_CONNECTIONS = 64,
    HURRIED_AT_ONCE = 64,
};

static void set_defaults(struct server_options *options)
{
    const struct server_options defaults = {
        .head_bytes_max = 16 * 1024,
        .headers_max = 100,
        .target_max = 8 * 1024,
        .pipeline_bytes_max = 64 * 1024,
        .head_timeout_ms = 10000,
        .body_timeout_ms = 30000,
        .drain_grace_ms = 2000,
        .idle_timeout_ms = 75000,
        .write_timeout_ms = 60000,
        .least_bytes_per_s = 1024,
        .closing_timeout_ms = 5000,
        .connections_max = 19000,
        .ws_message_max = PROTOCOL_MESSAGE_BYTES,
        .ws_fragments_max = PROTOCOL_FRAGMENTS,
        .ws_unfinished_max = 64 << 20,
        .ws_stranger_message_max = PROTOCOL_STRANGER_BYTES,
        .ws_strangers_max = 8 << 20,
        .ws_messages_per_s = PROTOCOL_MESSAGES_PER_S,
        .ws_messages_burst = PROTOCOL_BURST,
        .ws_ping_ms = PROTOCOL_PING_MS,
        .ws_stall_ms = PROTOCOL_STALL_MS,
    };
#define DEFAULT(field) options->field = options->field ? options->field : defaults.field
    DEFAULT(head_bytes_max);
    DEFAULT(headers_max);
    DEFAULT(target_max);
    DEFAULT(pipeline_bytes_max);
    DEFAULT(head_timeout_ms);
    DEFAULT(body_timeout_ms);
    DEFAULT(drain_grace_ms);
    DEFAULT(idle_timeout_ms);
    DEFAULT(write_timeout_ms);
    DEFAULT(least_bytes_per_s);
    DEFAULT(closing_timeout_ms);
    DEFAULT(connections_max);
    if (!options->connections_per_address)
        options->connections_per_address = 1 + (options->connections_max - 1) / 16;
    DEFAULT(ws_message_max);
    DEFAULT(ws_fragments_max);
    DEFAULT(ws_unfinished_max);
    DEFAULT(ws_stranger_message_max);
    DEFAULT(ws_strangers_max);
    DEFAULT(ws_messages_per_s);
    DEFAULT(ws_messages_burst);
    DEFAULT(ws_ping_ms);
    DEFAULT(ws_stall_ms);
#undef DEFAULT
}

void server_complain(struct server *server, const char *what, const char *reason)
{
    int64_t now = loop_now_ms(server->loop);
    if (server->complained_ms && now - server->complained_ms < COMPLAINT_MS)
        return;
    server->complained_ms = now;
    log_warn(what, "reason", reason, "connections", log_number((int64_t)server->open_count),
             NULL);
}

/* Above 7/8 of the limit each new connection closes one: the oldest that never showed a
 * valid credential, else the one that is idle for longest. Who floods the gateway closes
 * its own. */
static void make_room(struct server *server, const struct connection *newest)
{
    unsigned most = server->options.connections_max;
    if (server->open_count <= most - most / 8)
        return;
    bool alone = list_empty(&server->strangers) || server->strangers.next == &newest->spare;
    struct list *from = alone ? &server->idle : &server->strangers;
    if (list_empty(from))
        return;
    server_complain(server, "closing connections that are not in use",
                    "7/8 of the limit of connections are reached");
    metric_add(M_CONNECTIONS_EVICTED, 1);
    connection_close(container_of(from->next, struct connection, spare));
}

static struct address address_of_peer(int fd)
{
    struct sockaddr_storage peer = { 0 };
    socklen_t len = sizeof(peer);
    getpeername(fd, (struct sockaddr *)&peer, &len);
    return address_of_socket((struct sockaddr *)&peer);
}

static void note_listener(struct http_conn *conn, const struct listener *listener)
{
    struct server *server = listener->server;
    conn->admin = listener->options.admin;
    conn->header_due = listener->options.proxied;
    if (conn->admin)
        connection_trust(&conn->c);
    else
        list_append(&server->strangers, &conn->c.spare);
}

struct connection *server_adopt(struct listener *listener, int fd)
{
    struct server *server = listener->server;
    size_t http = sizeof(struct http_conn), ws = sizeof(struct ws);
    int on = 1;
    if (!listener->path)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    struct http_conn *conn = http_conn_create(server, fd, http > ws ? http : ws);
    if (!conn)
        return NULL;
    list_append(&server->connections, &conn->c.link);
    server->connection_count++;
    server->open_count++;
    note_listener(conn, listener);
    http_conn_begin(conn, address_of_peer(fd));
    make_room(server, &conn->c);
    return &conn->c;
}

bool server_is_full(const struct listener *listener)
{
    const struct server *server = listener->server;
    size_t extra = listener->options.admin ? ADMIN_CONNECTIONS : 0;
    return server->open_count >= server->options.connections_max + extra;
}

int server_open_spare(void)
{
    return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static enum err bind_listeners(struct server *server, struct failure *why)
{
    const struct server_options *options = &server->options;
    enum err refused = OK;
    server->listeners = mem_new_array(struct listener, options->listener_count);
    for (size_t i = 0; !refused && i < options->listener_count; i++) {
        refused = listener_bind(&server->listeners[i], server, &options->listeners[i], why);
        server->listener_count += !refused;
    }
    return refused;
}

static enum err start_listening(struct server *server, struct failure *why)
{
    char reason[80];
    enum err refused = bind_listeners(server, why);
    if (refused)
        return refused;
    if (!readiness_init(&server->readiness, server->loop))
        return explain(why, ERR_INVALID, "cannot watch connections: %s",
                       uv_strerror_r(-errno, reason, sizeof(reason)));
    for (size_t i = 0; i < server->listener_count; i++)
        listener_start(&server->listeners[i]);
    server->handles = (unsigned)server->listener_count + 1;
    return OK;
}

static void destroy(struct server *server)
{
    while (!list_empty(&server->requests))
        request_destroy(container_of(list_take(&server->requests), struct request, link));
    while (!list_empty(&server->inputs))
        ws_input_destroy(container_of(list_take(&server->inputs), struct ws_input, link));
    if (server->spare_fd >= 0)
        close(server->spare_fd);
    ws_handshake_finish(server);
    bytes_unref(server->ping_frame);
    buf_finish(&server->scratch);
    for (size_t i = 0; i < server->listener_count; i++)
        listener_finish(&server->listeners[i]);
    free(server->listeners);
    ranges_finish(&server->trusted);
    crowd_finish(&server->crowd);
    free(server);
}

static void on_finish(struct deferred *finish)
{
    struct server *server = container_of(finish, struct server, finish);
    server->closed(server);
    destroy(server);
}

/* The last one out turns off the light: called wherever something may have ended. */
static void maybe_closed(struct server *server)
{
    if (server->closed && !server->handles && !server->connection_count)
        loop_defer(server->loop, &server->finish);
}

static enum err read_trusted(struct server *server, struct failure *why)
{
    struct slice wrong;
    const char *trusted = server->options.trusted_proxies;
    if (ranges_read(slice_of(trusted ? trusted : ""), &server->trusted, &wrong))
        return OK;
    return explain(why, ERR_INVALID, "'%.*s' is no range of addresses", SLICE_ARG(wrong));
}

/* Those that come meanwhile are behind them, and know that there is a drain. */
static void hurry_some(struct deferred *hurrying)
{
    struct server *server = container_of(hurrying, struct server, hurrying);
    struct stint stint = loop_stint(server->loop);
    while (server->unhurried && !list_empty(&server->connections) &&
           stint_goes_on_by(&stint, HURRIED_AT_ONCE)) {
        struct list *link = list_take(&server->connections);
        list_append(&server->connections, link);
        server->unhurried--;
        http_conn_hurry(container_of(link, struct connection, link));
    }
    if (server->unhurried && !list_empty(&server->connections))
        loop_defer(server->loop, hurrying);
}

enum err server_create(struct loop *loop, const struct server_options *options,
                       struct server **result, struct failure *why)
{
    struct server *server = mem_new(struct server);
    server->loop = loop;
    server->options = *options;
    set_defaults(&server->options);
    list_init(&server->connections);
    list_init(&server->strangers);
    list_init(&server->idle);
    list_init(&server->requests);
    list_init(&server->inputs);
    list_init(&server->holding);
    list_init(&server->finish.link);
    server->finish.fn = on_finish;
    list_init(&server->hurrying.link);
    server->hurrying.fn = hurry_some;
    server->date_s = -1;
    server->spare_fd = server_open_spare();
    crowd_init(&server->crowd);

    server->ping_frame = bytes_create((struct slice){ "\x89", 2 });
    enum err status = ws_handshake_init(server, why);
    if (!status)
        status = read_trusted(server, why);
    if (!status)
        status = start_listening(server, why);
    if (status) {
        destroy(server);
        return status;
    }
    server->deadline_kind = timers_kind(loop_timers(loop), connection_on_timer);
    server->rest_kind = timers_kind(loop_timers(loop), listener_on_rested);
    *result = server;
    return OK;
}

int server_port(const struct server *server, size_t listener)
{
    return server->listeners[listener].port;
}

void *server_owner(struct server *server)
{
    return server->options.owner;
}

bool server_is_idle(const struct server *server)
{
    if (server->open_exchanges)
        return false;
    list_each (link, &server->connections)
        if (container_of(link, struct connection, link)->outbox.backlog)
            return false;
    return true;
}

static void on_handle_closed(struct server *server)
{
    server->handles--;
    maybe_closed(server);
}

static void on_listener_closed(uv_handle_t *handle)
{
    on_handle_closed(container_of((uv_poll_t *)handle, struct listener, handle)->server);
}

static void on_readiness_closed(uv_handle_t *handle)
{
    on_handle_closed(container_of((uv_poll_t *)handle, struct server, readiness.handle));
}

void server_drain(struct server *server)
{
    server->draining = true;
    server->unhurried = server->connection_count;
    hurry_some(&server->hurrying);
}

void server_close(struct server *server, server_closed_fn *closed)
{
    assert(!server->closed);
    server->closed = closed;
    loop_cancel_deferred(&server->hurrying);
    for (size_t i = 0; i < server->listener_count; i++)
        listener_close(&server->listeners[i], on_listener_closed);
    list_each (link, &server->connections)
        connection_close(container_of(link, struct connection, link));
    readiness_close(&server->readiness, on_readiness_closed);
    maybe_closed(server);
}

void server_forget(struct connection *conn)
{
    struct server *server = conn->server;
    list_remove(&conn->link);
    server->connection_count--;
    free(conn); /* the connection is what http_conn_create has allocated */
    maybe_closed(server);
}

const char *server_date(struct server *server)
{
    time_t now = (time_t)(loop_wall_ms(server->loop) / 1000);
    if (now != server->date_s) {
        struct tm parts;
        gmtime_r(&now, &parts);
        strftime(server->date, sizeof(server->date), "%a, %d %b %Y %H:%M:%S GMT", &parts);
        server->date_s = now;
    }
    return server->date;
}
