/* server.c - the listener, and what all of its connections share.
 *
 *   accept ─► http_conn, or 503 and close: too many connections, or no descriptor left
 *   drain ──► replies say close
 *   close ──► listener, connections, epoll ─► the last one out: closed, and all is freed */
#include "net/server_state.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "net/http_conn.h"
#include "net/ws_conn.h"
#include "net/ws_handshake.h"
#include "runcast/protocol.h"

enum {
    BACKLOG = 4096,
    ACCEPTS_PER_TURN = 64,
    REST_MS = 50,
    COMPLAINT_MS = 1000,
    RETRY_AFTER_MAX_S = 10,
    WASTE_READS = 16,
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
        .idle_timeout_ms = 75000,
        .write_timeout_ms = 60000,
        .closing_timeout_ms = 5000,
        .connections_max = 19000,
        .ws_message_max = PROTOCOL_MESSAGE_BYTES,
        .ws_fragments_max = PROTOCOL_FRAGMENTS,
        .ws_unfinished_max = 64 << 20,
        .ws_messages_per_s = PROTOCOL_MESSAGES_PER_S,
        .ws_messages_burst = PROTOCOL_BURST,
        .ws_ping_ms = PROTOCOL_PING_MS,
        .ws_pong_ms = PROTOCOL_PONG_MS,
        .ws_stall_ms = PROTOCOL_STALL_MS,
    };
#define DEFAULT(field) options->field = options->field ? options->field : defaults.field
    DEFAULT(head_bytes_max);
    DEFAULT(headers_max);
    DEFAULT(target_max);
    DEFAULT(pipeline_bytes_max);
    DEFAULT(head_timeout_ms);
    DEFAULT(body_timeout_ms);
    DEFAULT(idle_timeout_ms);
    DEFAULT(write_timeout_ms);
    DEFAULT(closing_timeout_ms);
    DEFAULT(connections_max);
    DEFAULT(ws_message_max);
    DEFAULT(ws_fragments_max);
    DEFAULT(ws_unfinished_max);
    DEFAULT(ws_messages_per_s);
    DEFAULT(ws_messages_burst);
    DEFAULT(ws_ping_ms);
    DEFAULT(ws_pong_ms);
    DEFAULT(ws_stall_ms);
#undef DEFAULT
}

static bool is_loopback(const struct sockaddr_storage *address)
{
    if (address->ss_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)address;
        return ntohl(in->sin_addr.s_addr) >> 24 == 127;
    }
    if (address->ss_family != AF_INET6)
        return true;
    const struct in6_addr *in6 = &((const struct sockaddr_in6 *)address)->sin6_addr;
    if (IN6_IS_ADDR_V4MAPPED(in6))
        return in6->s6_addr[12] == 127;
    return IN6_IS_ADDR_LOOPBACK(in6);
}

static void note_peer(struct http_conn *conn, int fd)
{
    struct sockaddr_storage address = { 0 };
    socklen_t len = sizeof(address);
    getpeername(fd, (struct sockaddr *)&address, &len);
    conn->peer_is_loopback = is_loopback(&address);
    if (address.ss_family == AF_INET)
        uv_ip4_name((struct sockaddr_in *)&address, conn->peer, sizeof(conn->peer));
    else if (address.ss_family == AF_INET6)
        uv_ip6_name((struct sockaddr_in6 *)&address, conn->peer, sizeof(conn->peer));
    else
        snprintf(conn->peer, sizeof(conn->peer), "unix");
}

struct connection *server_adopt(struct server *server, int fd)
{
    size_t http = sizeof(struct http_conn), ws = sizeof(struct ws);
    int on = 1;
    if (!server->path)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    struct http_conn *conn = http_conn_create(server, fd, http > ws ? http : ws);
    if (!conn)
        return NULL;
    note_peer(conn, fd);
    list_append(&server->connections, &conn->c.link);
    list_append(&server->strangers, &conn->c.spare);
    server->connection_count++;
    return &conn->c;
}

static const char turning_away[] = "turning connections away";

/* Tells the client to come back later, and forgets it. What it has sent is read first:
 * else the kernel would reset the connection, and the answer with it. Who goes on sending
 * is not waited for. */
static void turn_away(struct server *server, int fd)
{
    char answer[256], waste[4096];
    static const char body[] = "{\"error\":\"Too many connections: try again later\"}";
    int len = snprintf(answer, sizeof(answer),
                       "HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\n"
                       "content-type: application/json; charset=utf-8\r\n"
                       "retry-after: %u\r\ncontent-length: %zu\r\n\r\n%s",
                       1 + server->turn++ % RETRY_AFTER_MAX_S, sizeof(body) - 1, body);
    metric_add(M_HTTP_REFUSED, 1);
    if (send(fd, answer, (size_t)len, MSG_NOSIGNAL | MSG_DONTWAIT) == len)
        shutdown(fd, SHUT_WR);
    for (int i = 0; i < WASTE_READS; i++)
        if (recv(fd, waste, sizeof(waste), MSG_DONTWAIT) != sizeof(waste))
            break;
    close(fd);
}

static void complain(struct server *server, const char *what, const char *reason)
{
    int64_t now = loop_now_ms(server->loop);
    if (server->complained_ms && now - server->complained_ms < COMPLAINT_MS)
        return;
    server->complained_ms = now;
    log_warn(what, "reason", reason, "connections",
             log_number((int64_t)server->connection_count), NULL);
}

/* Above 7/8 of the limit each new connection closes one: the oldest that never showed a
 * valid credential, else the one that is idle for longest. Who floods the gateway closes
 * its own. */
static void make_room(struct server *server, const struct connection *newest)
{
    unsigned most = server->options.connections_max;
    if (server->connection_count <= most - most / 8)
        return;
    bool alone = server->strangers.next == &newest->spare;
    struct list *from = alone ? &server->idle : &server->strangers;
    if (list_empty(from))
        return;
    complain(server, "closing connections that are not in use",
             "7/8 of the limit of connections are reached");
    metric_add(M_CONNECTIONS_EVICTED, 1);
    connection_close(container_of(from->next, struct connection, spare));
}

static void let_in(struct server *server, int fd)
{
    struct connection *conn = server_adopt(server, fd);
    if (conn)
        make_room(server, conn);
}

static int open_spare(void)
{
    return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static int accept_one(struct server *server)
{
    return accept4(server->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

/* No descriptor is left: the spare one is given up for as long as the refusal takes. */
static bool shed_one(struct server *server)
{
    if (server->spare_fd < 0)
        return false;
    close(server->spare_fd);
    int fd = accept_one(server);
    if (fd >= 0)
        turn_away(server, fd);
    server->spare_fd = open_spare();
    return fd >= 0;
}

static void on_listener(uv_poll_t *handle, int status, int events);

static void on_rested(struct timer *timer)
{
    struct server *server = container_of(timer, struct server, rest);
    if (server->spare_fd < 0)
        server->spare_fd = open_spare();
    uv_poll_start(&server->listener, UV_READABLE, on_listener);
}

/* The kernel would report the waiting connection again and again. */
static void rest(struct server *server)
{
    uv_poll_stop(&server->listener);
    loop_set_timer(server->loop, &server->rest, server->rest_kind, REST_MS);
}

/* False: no more in this turn. */
static bool accept_failed(struct server *server, int error)
{
    char reason[80];
    if (error == ECONNABORTED || error == EINTR || error == EPROTO)
        return true;
    if (error == EAGAIN)
        return false;
    complain(server, turning_away, uv_strerror_r(-error, reason, sizeof(reason)));
    if ((error == EMFILE || error == ENFILE) && shed_one(server))
        return true;
    rest(server);
    return false;
}

static void on_listener(uv_poll_t *handle, int status, int events)
{
    struct server *server = container_of(handle, struct server, listener);
    (void)status, (void)events;
    for (unsigned i = 0; i < ACCEPTS_PER_TURN; i++) {
        int fd = accept_one(server);
        if (fd < 0) {
            if (!accept_failed(server, errno))
                return;
        } else if (server->connection_count >= server->options.connections_max) {
            complain(server, turning_away, "the limit of connections is reached");
            turn_away(server, fd);
        } else {
            let_in(server, fd);
        }
    }
}

static enum err cannot_listen(struct server *server, int error, struct failure *why)
{
    char reason[80];
    return explain(why, ERR_INVALID, "cannot listen on %s port %d: %s",
                   server->options.host, server->options.port,
                   uv_strerror_r(-error, reason, sizeof(reason)));
}

static socklen_t parse_address(const struct server_options *options,
                               struct sockaddr_storage *address)
{
    struct sockaddr_un *un = (struct sockaddr_un *)address;
    if (options->host[0] == '/') {
        un->sun_family = AF_UNIX;
        if (strlen(options->host) >= sizeof(un->sun_path))
            return 0;
        memcpy(un->sun_path, options->host, strlen(options->host) + 1);
        return sizeof(*un);
    }
    if (options->port < 0 || options->port > UINT16_MAX)
        return 0;
    if (!uv_ip4_addr(options->host, options->port, (struct sockaddr_in *)address))
        return sizeof(struct sockaddr_in);
    if (!uv_ip6_addr(options->host, options->port, (struct sockaddr_in6 *)address))
        return sizeof(struct sockaddr_in6);
    return 0;
}

static int bind_and_listen(struct server *server, const struct sockaddr_storage *address,
                           socklen_t len)
{
    int fd = server->listen_fd, on = 1;
    if (server->path)
        unlink(server->path);
    else
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(fd, (const struct sockaddr *)address, len))
        return errno;
    if (server->path && chmod(server->path, S_IRUSR | S_IWUSR))
        return errno;
    return listen(fd, BACKLOG) ? errno : 0;
}

static void note_port(struct server *server)
{
    struct sockaddr_storage address = { 0 };
    socklen_t len = sizeof(address);
    getsockname(server->listen_fd, (struct sockaddr *)&address, &len);
    if (address.ss_family == AF_INET)
        server->port = ntohs(((struct sockaddr_in *)&address)->sin_port);
    else if (address.ss_family == AF_INET6)
        server->port = ntohs(((struct sockaddr_in6 *)&address)->sin6_port);
}

static enum err start_listening(struct server *server, struct failure *why)
{
    struct sockaddr_storage address = { 0 };
    socklen_t len = parse_address(&server->options, &address);
    if (!len)
        return explain(why, ERR_INVALID, "'%s' port %d is not an address to listen on",
                       server->options.host, server->options.port);
    if (address.ss_family == AF_UNIX)
        server->path = mem_text(slice_of(server->options.host));
    server->listen_fd =
        socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (server->listen_fd < 0)
        return cannot_listen(server, errno, why);
    int error = bind_and_listen(server, &address, len);
    if (!error && !readiness_init(&server->readiness, server->loop))
        error = errno;
    if (!error)
        error = -uv_poll_init(loop_uv(server->loop), &server->listener, server->listen_fd);
    if (error) {
        close(server->listen_fd);
        return cannot_listen(server, error, why);
    }
    note_port(server);
    server->handles = 2;
    uv_poll_start(&server->listener, UV_READABLE, on_listener);
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
    buf_finish(&server->scratch);
    free(server->path);
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
    list_init(&server->finish.link);
    server->finish.fn = on_finish;
    server->date_s = -1;
    server->spare_fd = open_spare();

    enum err status = ws_handshake_init(server, why);
    if (!status)
        status = start_listening(server, why);
    if (status) {
        destroy(server);
        return status;
    }
    server->deadline_kind = timers_kind(loop_timers(loop), connection_on_timer);
    server->rest_kind = timers_kind(loop_timers(loop), on_rested);
    *result = server;
    return OK;
}

int server_port(const struct server *server)
{
    return server->port;
}

void *server_owner(struct server *server)
{
    return server->options.owner;
}

size_t server_open_exchanges(const struct server *server)
{
    return server->open_exchanges;
}

static void on_handle_closed(struct server *server)
{
    server->handles--;
    maybe_closed(server);
}

static void on_listener_closed(uv_handle_t *handle)
{
    on_handle_closed(container_of((uv_poll_t *)handle, struct server, listener));
}

static void on_readiness_closed(uv_handle_t *handle)
{
    on_handle_closed(container_of((uv_poll_t *)handle, struct server, readiness.handle));
}

static void stop_listening(struct server *server)
{
    if (server->listen_fd < 0)
        return;
    timers_clear(loop_timers(server->loop), &server->rest);
    uv_close((uv_handle_t *)&server->listener, on_listener_closed);
    close(server->listen_fd);
    server->listen_fd = -1;
    if (server->path)
        unlink(server->path);
}

void server_drain(struct server *server)
{
    server->draining = true;
}

void server_close(struct server *server, server_closed_fn *closed)
{
    assert(!server->closed);
    server->closed = closed;
    stop_listening(server);
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
