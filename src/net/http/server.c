/* server.c - starts, drains and closes a server with its listeners and connections.
 *
 *   drain ──► replies close their connections
 *   close ──► listeners, connections, epoll ─► once all are closed: closed, all is freed */
#include "net/http/server_state.h"

#include <assert.h>
#include <errno.h>
#include <unistd.h>

#include "base/mem.h"
#include "net/http/admission.h"
#include "net/http/http_conn.h"
#include "net/http/secure.h"
#include "net/http/ws_input.h"
#include "net/http/ws_key.h"
#include "runcast/protocol.h"

enum { DRAINED_AT_ONCE = 64 };

static unsigned share_of_address(unsigned connections_max)
{
    return 1 + (connections_max - 1) / 16;
}

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
        .ws_unauthenticated_message_max = PROTOCOL_UNAUTHENTICATED_BYTES,
        .ws_unauthenticated_max = 8 << 20,
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
        options->connections_per_address = share_of_address(options->connections_max);
    DEFAULT(ws_message_max);
    DEFAULT(ws_fragments_max);
    DEFAULT(ws_unfinished_max);
    DEFAULT(ws_unauthenticated_message_max);
    DEFAULT(ws_unauthenticated_max);
    DEFAULT(ws_messages_per_s);
    DEFAULT(ws_messages_burst);
    DEFAULT(ws_ping_ms);
    DEFAULT(ws_stall_ms);
#undef DEFAULT
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
    ws_key_free_digest(server->sha1);
    bytes_unref(server->ping_frame);
    buf_finish(&server->scratch);
    loop_remove_flusher(&server->ring_flusher);
    for (size_t i = 0; i < server->listener_count; i++)
        listener_finish(&server->listeners[i]);
    free(server->listeners);
    certificates_unref(server->certificates);
    ranges_finish(&server->trusted);
    address_limit_finish(&server->addresses);
    free(server);
}

static void on_finish(struct deferred *finish)
{
    struct server *server = container_of(finish, struct server, finish);
    server->closed(server);
    destroy(server);
}

static enum err read_trusted(struct server *server, struct failure *why)
{
    struct slice wrong;
    const char *trusted = server->options.trusted_proxies;
    if (ranges_read(slice_of(trusted ? trusted : ""), &server->trusted, &wrong))
        return OK;
    return explain(why, ERR_INVALID, "\"%.*s\" is not an address range", SLICE_ARG(wrong));
}

/* Informs connections of a drain. New ones are appended after these, and know already. */
static void drain_some_connections(struct deferred *drain_notice)
{
    struct server *server = container_of(drain_notice, struct server, drain_notice);
    struct timeslice timeslice = loop_timeslice(server->loop);
    while (server->undrained && !list_empty(&server->connections) &&
           timeslice_left_every(&timeslice, DRAINED_AT_ONCE)) {
        struct list *link = list_take(&server->connections);
        list_append(&server->connections, link);
        server->undrained--;
        http_conn_drain(container_of(link, struct connection, link));
    }
    if (server->undrained && !list_empty(&server->connections))
        loop_defer(server->loop, drain_notice);
}

static bool flush_ring(struct flusher *flusher)
{
    ring_flush(container_of(flusher, struct server, ring_flusher)->options.ring);
    return false;
}

static void begin_ring(struct server *server)
{
    server->ring_flusher = (struct flusher){ .fn = flush_ring, .runs_last = true };
    loop_add_flusher(server->loop, &server->ring_flusher);
    if (server->options.ring)
        ring_tell(server->options.ring, connection_on_sent);
}

enum err server_create(struct loop *loop, const struct server_options *options,
                       struct server **result, struct failure *why)
{
    struct server *server = mem_new(struct server);
    server->loop = loop;
    server->options = *options;
    set_defaults(&server->options);
    server->conn_size = admission_conn_size();
    list_init(&server->connections);
    list_init(&server->unauthenticated);
    list_init(&server->idle);
    list_init(&server->requests);
    list_init(&server->inputs);
    list_init(&server->holding);
    secure_init(server);
    list_init(&server->finish.link);
    server->finish.fn = on_finish;
    list_init(&server->drain_notice.link);
    server->drain_notice.fn = drain_some_connections;
    begin_ring(server);
    server->date_s = -1;
    server->spare_fd = server_open_spare();
    address_limit_init(&server->addresses);

    server->ping_frame = bytes_create((struct slice){ "\x89", 2 });
    enum err status = ws_key_fetch_digest(&server->sha1, why);
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

void server_limit_connections(struct server *server, unsigned most, unsigned per_address)
{
    server->options.connections_max = most;
    server->options.connections_per_address =
        per_address ? per_address : share_of_address(most);
}

void server_show(struct server *server, struct certificates *certificates)
{
    certificates_ref(certificates);
    certificates_unref(server->certificates);
    server->certificates = certificates;
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
    server_maybe_closed(server);
}

static void on_listener_closed(uv_handle_t *handle)
{
    on_handle_closed(container_of((uv_poll_t *)handle, struct listener, handle)->server);
}

static void on_readiness_closed(uv_handle_t *handle)
{
    on_handle_closed(container_of((uv_poll_t *)handle, struct server, readiness.handle));
}

void server_accept(struct server *server)
{
    for (size_t i = 0; i < server->listener_count; i++)
        if (listener_is_kept(&server->listeners[i]))
            listener_accept(&server->listeners[i]);
}

bool server_has_next(const struct server *server)
{
    bool all = true;
    for (size_t i = 0; i < server->listener_count; i++)
        all &=
            listener_is_kept(&server->listeners[i]) || server->listeners[i].options.admin;
    return all;
}

void server_drain(struct server *server)
{
    server->draining = true;
    server->undrained = server->connection_count;
    drain_some_connections(&server->drain_notice);
}

void server_pause(struct server *server)
{
    for (size_t i = 0; i < server->listener_count; i++)
        if (listener_is_kept(&server->listeners[i]))
            listener_pause(&server->listeners[i]);
}

void server_note_late(struct server *server)
{
    server->notes_late = true;
}

bool server_has_early(const struct server *server)
{
    return server->early_exchanges;
}

void server_stop_accepting(struct server *server)
{
    for (size_t i = 0; i < server->listener_count; i++)
        if (!server->listeners[i].options.admin)
            listener_leave(&server->listeners[i], on_listener_closed);
}

bool server_awaits_requests(const struct server *server)
{
    list_each (link, &server->connections)
        if (http_conn_is_new(container_of(link, struct connection, link)))
            return true;
    return false;
}

void server_close(struct server *server, server_closed_fn *closed)
{
    assert(!server->closed);
    server->closed = closed;
    loop_cancel_deferred(&server->drain_notice);
    loop_cancel_deferred(&server->securing);
    for (size_t i = 0; i < server->listener_count; i++)
        listener_close(&server->listeners[i], on_listener_closed);
    list_each (link, &server->connections)
        connection_close(container_of(link, struct connection, link));
    readiness_close(&server->readiness, on_readiness_closed);
    server_maybe_closed(server);
}
