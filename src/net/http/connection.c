/* connection.c - the common part of HTTP and WebSocket connections.
 *
 * Events from epoll become calls of the connection's ops, bytes are sent through the
 * outbox, and the end is reported once. */
#include "net/http/connection.h"

#include <errno.h>
#include <linux/sockios.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "net/http/http.h"
#include "net/http/server_state.h"
#include "net/tls.h"

enum {
    LOOKS = 6,                /* checks per interval in which the peer may be silent */
    READ_SLOWLY = 384 * 1024, /* bytes; a sixteenth of a kernel's buffer */
};

/* A handshake that is queued for its next step waits for no event. */
static uint32_t events_of_handshake(const struct secure *secure)
{
    if (!list_empty(&secure->waiting))
        return 0;
    return secure->waits_to_write ? EPOLLOUT : EPOLLIN;
}

static bool update_watch(struct connection *conn)
{
    if (conn->closed || conn->watch.fd < 0)
        return true;
    if (conn->secure && !conn->secure->is_open)
        return readiness_watch(&conn->server->readiness, &conn->watch,
                               events_of_handshake(conn->secure));
    uint32_t events = conn->outbox.backlog ? EPOLLOUT : 0;
    if (!conn->eof && !conn->paused)
        events |= EPOLLIN;
    else if (!conn->eof && !conn->left)
        events |= EPOLLRDHUP;
    return readiness_watch(&conn->server->readiness, &conn->watch, events);
}

void connection_watch(struct connection *conn)
{
    update_watch(conn);
}

static void on_later(struct deferred *later)
{
    struct connection *conn = container_of(later, struct connection, later);
    if (conn->closed) {
        conn->gone = true;
        conn->ops->on_closed(conn);
        return;
    }
    if (conn->lost)
        connection_close(conn);
    else
        conn->ops->on_turn(conn);
}

static void on_ready(struct readiness_watch *watch, uint32_t events);

static void init(struct connection *conn, struct server *server, int fd,
                 const struct connection_ops *ops)
{
    conn->server = server;
    conn->ops = ops;
    conn->watch = (struct readiness_watch){ .fd = fd, .fn = on_ready };
    conn->deadline_ms = INT64_MAX;
    conn->later.fn = on_later;
    list_init(&conn->later.link);
    list_init(&conn->link);
    list_init(&conn->spare);
}

void connection_open_carried(struct connection *conn, struct server *server,
                             const struct connection_ops *ops)
{
    init(conn, server, -1, ops);
}

bool connection_open(struct connection *conn, struct server *server, int fd,
                     const struct connection_ops *ops)
{
    init(conn, server, fd, ops);
    if (update_watch(conn))
        return true;
    close(fd);
    return false;
}

/* Sends close_notify, but only once everything was sent. Otherwise a truncated response
 * could pass for a complete one. */
static void say_end(struct connection *conn)
{
    struct tls *tls = conn->outbox.tls;
    if (!tls || conn->outbox.backlog || conn->secure->end_bytes)
        return;
    int64_t before = tls_bytes_sent(tls);
    tls_say_end(tls);
    conn->secure->end_bytes = (int)(tls_bytes_sent(tls) - before);
}

static void after_linger(struct connection *conn)
{
    if (conn->outbox.backlog)
        return;
    say_end(conn);
    if (conn->watch.fd >= 0)
        shutdown(conn->watch.fd, SHUT_WR);
    if (conn->eof || conn->watch.fd < 0)
        connection_close(conn);
}

void connection_note_life(struct connection *conn)
{
    conn->life_ms = loop_now_ms(conn->server->loop);
}

/* Flushes the ring if it holds bytes of this connection, so that nothing overtakes them. */
static void settle(struct connection *conn)
{
    if (conn->soon.place)
        ring_flush(conn->server->options.ring);
}

/* Queries how many bytes the peer's kernel has not accepted yet. Our kernel reports a
 * socket as writable only when a large part of its buffer, maybe megabytes, is free again,
 * and a slow peer may read for a long time before that. If the number is 0, all bytes may
 * be in a buffer of the peer's kernel, which says nothing about the peer. */
bool connection_look(struct connection *conn)
{
    int queued = 0;
    settle(conn);
    ioctl(conn->watch.fd, SIOCOUTQ, &queued);
    int64_t taken = conn->outbox.handed - queued;
    bool waits = queued || conn->outbox.backlog;
    if (waits && taken > conn->taken)
        connection_note_life(conn);
    conn->taken = taken;
    return waits;
}

bool connection_is_silent(struct connection *conn, int64_t limit_ms, int64_t *again_ms)
{
    int64_t look_ms = limit_ms / LOOKS + 1;
    int64_t left = conn->life_ms + limit_ms - loop_now_ms(conn->server->loop);
    *again_ms = left < look_ms ? left : look_ms;
    return left <= 0;
}

/* Gives a peer enough time to read all bytes accepted so far. For one silence, it gives the
 * time for READ_SLOWLY bytes: a slow reader's kernel fills its buffer at once, and accepts
 * more only after a sixteenth of it was read. */
bool connection_is_slow(struct connection *conn, int64_t grace_ms, int64_t *again_ms)
{
    int64_t look_ms = grace_ms / LOOKS + 1, now = loop_now_ms(conn->server->loop);
    int64_t least = conn->server->options.least_bytes_per_s;
    connection_look(conn);
    int64_t before = conn->answering->handed_before;
    int64_t taken = conn->taken > before ? conn->taken - before : 0;
    int64_t silence = taken < READ_SLOWLY ? taken : READ_SLOWLY;
    int64_t left = conn->answering->began_ms + taken * 1000 / least;
    if (left > conn->life_ms + silence * 1000 / least)
        left = conn->life_ms + silence * 1000 / least;
    left += grace_ms - now;
    *again_ms = left < look_ms ? left : look_ms;
    return left <= 0;
}

static void count_unsent(struct connection *conn)
{
    struct quota *quota = conn->outbox.quota;
    size_t own = outbox_own(&conn->outbox), little = conn->lasts ? LITTLE_UNSENT : 0;
    quota_release(quota, conn->counted);
    conn->counted = quota && own > little ? own : 0;
    quota_take(quota, conn->counted);
}

void connection_count_in(struct connection *conn, struct quota *quota, bool lasts)
{
    settle(conn);
    quota_release(conn->outbox.quota, conn->counted);
    conn->counted = 0;
    conn->lasts = lasts;
    outbox_count_in(&conn->outbox, quota);
    count_unsent(conn);
    if (!conn->answering)
        return;
    conn->answering->began_ms = loop_now_ms(conn->server->loop);
    conn->answering->handed_before = conn->outbox.handed;
}

/* Notes the result of sending. The end of a connection is reported at the end of the turn,
 * because a send must not make callbacks. */
static bool sent(struct connection *conn, enum outbox_status status, bool was_empty)
{
    count_unsent(conn);
    if (status == OUTBOX_EMPTY)
        return true;
    if (status == OUTBOX_LOST) {
        conn->lost = true;
        loop_defer(conn->server->loop, &conn->later);
        return false;
    }
    if (was_empty) {
        connection_note_life(conn);
        update_watch(conn);
    }
    return false;
}

static bool may_send(const struct connection *conn)
{
    return conn->watch.fd >= 0 && !conn->closed && !conn->lost && !conn->lingering;
}

bool connection_send(struct connection *conn, const struct piece *pieces, size_t count)
{
    settle(conn);
    if (!may_send(conn))
        return false;
    bool was_empty = !conn->outbox.backlog;
    return sent(conn, outbox_send(&conn->outbox, conn->watch.fd, pieces, count), was_empty);
}

bool connection_send_frames(struct connection *conn, struct bytes *const *frames,
                            size_t count)
{
    settle(conn);
    if (!may_send(conn))
        return false;
    bool was_empty = !conn->outbox.backlog;
    return sent(conn, outbox_send_frames(&conn->outbox, conn->watch.fd, frames, count),
                was_empty);
}

/* Returns false if the pieces must be sent now. */
static bool send_by_ring(struct connection *conn, const struct piece *pieces, size_t count)
{
    struct server *server = conn->server;
    if (!server->options.ring || conn->outbox.backlog || conn->outbox.tls ||
        !may_send(conn) ||
        !ring_send(server->options.ring, &conn->soon, conn->watch.fd, pieces, count))
        return false;
    loop_wake(server->loop, &server->ring_flusher);
    return true;
}

bool connection_send_soon(struct connection *conn, const struct piece *pieces, size_t count)
{
    return send_by_ring(conn, pieces, count) || connection_send(conn, pieces, count);
}

bool connection_send_frames_soon(struct connection *conn, struct bytes *const *frames,
                                 size_t count)
{
    MEM_UNFILLED struct piece pieces[OUTBOX_PIECES_MAX];
    for (size_t i = 0; i < count; i++)
        pieces[i] = piece_of(frames[i]);
    return send_by_ring(conn, pieces, count) || connection_send_frames(conn, frames, count);
}

void connection_on_sent(struct ring_sender *sender, const struct piece *pieces,
                        size_t count, ssize_t result)
{
    struct connection *conn = container_of(sender, struct connection, soon);
    enum outbox_status status = outbox_note_sent(&conn->outbox, pieces, count, result);
    if (!sent(conn, status, true) && !conn->lost)
        conn->ops->on_unsent(conn);
}

static void close_lost(struct connection *conn)
{
    conn->lost = true;
    connection_close(conn);
}

static void on_writable(struct connection *conn)
{
    bool progress;
    enum outbox_status status = outbox_flush(&conn->outbox, conn->watch.fd, &progress);
    count_unsent(conn);
    if (status == OUTBOX_LOST) {
        close_lost(conn);
        return;
    }
    if (progress)
        connection_note_life(conn);
    if (status == OUTBOX_UNSENT)
        return;
    update_watch(conn);
    if (conn->lingering)
        after_linger(conn);
    if (!conn->closed)
        conn->ops->on_drained(conn);
}

static void on_end(struct connection *conn)
{
    conn->eof = true;
    conn->left = true;
    update_watch(conn);
    if (!conn->lingering)
        conn->ops->on_left(conn);
    else if (!conn->outbox.backlog)
        connection_close(conn);
}

static void on_disconnect(struct connection *conn)
{
    conn->left = true;
    update_watch(conn);
    conn->ops->on_left(conn);
}

void connection_feed(struct connection *conn, struct slice bytes)
{
    if (!conn->lingering && !conn->closed && !conn->lost)
        conn->ops->on_bytes(conn, bytes);
}

/* Unauthenticated peers may buffer at most UNAUTHENTICATED_INPUT bytes. */
static size_t most_to_read(const struct connection *conn)
{
    size_t kept = connection_kept(conn).len;
    if (conn->most)
        return conn->most;
    if (conn->known)
        return SERVER_INPUT;
    return kept < UNAUTHENTICATED_INPUT ? UNAUTHENTICATED_INPUT - kept : 1;
}

/* Queues a connection whose TLS holds bytes, because the kernel does not report them
 * again. */
static void read_rest_later(struct connection *conn)
{
    struct server *server = conn->server;
    struct tls *tls = conn->outbox.tls;
    if (!tls || conn->paused || conn->eof || !tls_has_more(tls) ||
        !list_empty(&conn->secure->waiting))
        return;
    list_append(&server->unread, &conn->secure->waiting);
    loop_defer(server->loop, &server->securing);
}

/* Like recv. A socket that ends without close_notify counts as if the peer had sent one,
 * because a request shows by itself whether it is complete. Without renegotiation, reading
 * never waits for writing. */
static ssize_t receive(struct connection *conn, char *input, size_t most)
{
    size_t len;
    if (!conn->outbox.tls)
        return recv(conn->watch.fd, input, most, MSG_DONTWAIT);
    switch (tls_read(conn->outbox.tls, input, most, &len)) {
    case TLS_DONE: return (ssize_t)len;
    case TLS_ENDED:
    case TLS_CUT: return 0;
    case TLS_WANTS_READ: errno = EAGAIN; return -1;
    default: errno = EPROTO; return -1;
    }
}

static void on_readable(struct connection *conn)
{
    char *input = conn->server->input;
    ssize_t len = receive(conn, input, most_to_read(conn));
    if (len > 0)
        connection_feed(conn, (struct slice){ input, (size_t)len });
    else if (len == 0)
        on_end(conn);
    else if (errno != EAGAIN && errno != EINTR)
        close_lost(conn);
    if (len > 0)
        read_rest_later(conn);
}

void connection_read(struct connection *conn)
{
    if (!conn->closed && !conn->paused && !conn->eof)
        on_readable(conn);
}

static void serve(struct connection *conn, uint32_t events)
{
    if (events & EPOLLOUT && conn->outbox.backlog)
        on_writable(conn);
    if (events & EPOLLIN)
        connection_read(conn);
}

/* Queues the connection for the next step of its handshake. */
static void get_in_line(struct connection *conn)
{
    struct server *server = conn->server;
    list_append(&server->handshaking, &conn->secure->waiting);
    update_watch(conn);
    loop_defer(server->loop, &server->securing);
}

/* The kernel reports errors and hang-ups even if they are not requested. Events not handled
 * because the turn's time has run out are reported again. Freeing the bytes that a peer
 * left unread when it reset the connection may take a turn, too. */
static void on_ready(struct readiness_watch *watch, uint32_t events)
{
    struct connection *conn = container_of(watch, struct connection, watch);
    bool shakes = conn->secure && !conn->secure->is_open;
    if (conn->closed || (!shakes && !readiness_may_serve(&conn->server->readiness, watch)))
        return;
    if (events & EPOLLERR) {
        close_lost(conn);
        return;
    }
    if (shakes) {
        get_in_line(conn);
        return;
    }
    if (events & EPOLLHUP)
        events |= watch->events;
    serve(conn, events);
    if (events & EPOLLRDHUP && !conn->closed && conn->paused && !conn->left)
        on_disconnect(conn);
}

void connection_keep(struct connection *conn, struct slice bytes)
{
    if (!bytes.len)
        return;
    if (!conn->pending)
        conn->pending = mem_new(struct buf);
    buf_add(conn->pending, bytes);
}

struct slice connection_kept(const struct connection *conn)
{
    return conn->pending ? buf_slice(conn->pending) : (struct slice){ 0 };
}

struct buf connection_take_kept(struct connection *conn)
{
    struct buf kept = { 0 };
    if (conn->pending)
        kept = *conn->pending;
    free(conn->pending);
    conn->pending = NULL;
    return kept;
}

static void drop_kept(struct connection *conn)
{
    struct buf kept = connection_take_kept(conn);
    buf_finish(&kept);
}

void connection_pause(struct connection *conn, bool paused)
{
    if (conn->paused == paused)
        return;
    conn->paused = paused;
    update_watch(conn);
    read_rest_later(conn);
}

void connection_defer(struct connection *conn)
{
    if (!conn->closed)
        loop_defer(conn->server->loop, &conn->later);
}

/* Most deadlines are postponed before they are due. The timer then stays where it is, and
 * checks the deadline when it fires. */
void connection_set_deadline(struct connection *conn, int64_t ms)
{
    struct server *server = conn->server;
    if (conn->closed)
        return;
    conn->deadline_ms = loop_now_ms(server->loop) + ms;
    if (!conn->timer.place || conn->timer.at_ms > conn->deadline_ms)
        loop_set_timer(server->loop, &conn->timer, server->deadline_kind, ms);
}

void connection_clear_deadline(struct connection *conn)
{
    conn->deadline_ms = INT64_MAX;
}

void connection_on_timer(struct timer *timer)
{
    struct connection *conn = container_of(timer, struct connection, timer);
    struct server *server = conn->server;
    int64_t left = conn->deadline_ms - loop_now_ms(server->loop);
    if (conn->deadline_ms == INT64_MAX)
        return;
    if (left > 0)
        loop_set_timer(server->loop, timer, server->deadline_kind, left);
    else
        conn->ops->on_deadline(conn);
}

void connection_trust(struct connection *conn)
{
    if (!conn->known)
        list_remove(&conn->spare);
    conn->known = true;
}

void connection_linger(struct connection *conn)
{
    if (conn->lingering || conn->closed)
        return;
    settle(conn);
    conn->lingering = true;
    conn->paused = false;
    drop_kept(conn);
    update_watch(conn);
    after_linger(conn);
}

void connection_tell_delivery(struct connection *conn, enum delivery_end end)
{
    struct delivery *delivery = conn->answering->delivery;
    conn->answering->delivery = NULL;
    if (delivery)
        delivery->done(delivery, end);
}

/* Returns what became of the response. Our own FIN, once sent, counts as a byte that the
 * peer's kernel must accept. The bytes of close_notify are not part of the response. */
static enum delivery_end delivery_of(const struct connection *conn)
{
    int queued = 0, end_bytes = conn->secure ? conn->secure->end_bytes : 0;
    if (conn->outbox.backlog)
        return DELIVERY_LOST;
    if (conn->lost)
        return DELIVERY_UNKNOWN; /* the kernel has discarded the rest */
    ioctl(conn->watch.fd, SIOCOUTQ, &queued);
    return queued > conn->lingering + end_bytes ? DELIVERY_LOST : DELIVERY_TAKEN;
}

void connection_drop_secure(struct connection *conn)
{
    struct secure *secure = conn->secure;
    if (!secure)
        return;
    conn->server->begun_count -= !list_empty(&secure->begun);
    list_remove(&secure->begun);
    list_remove(&secure->waiting);
    tls_destroy(secure->tls);
    certificates_unref(secure->certificates);
    free(secure);
    conn->secure = NULL;
    conn->outbox.tls = NULL;
}

void connection_close(struct connection *conn)
{
    if (conn->closed)
        return;
    settle(conn);
    conn->closed = true;
    if (conn->answering && conn->answering->delivery)
        conn->answering->delivered = delivery_of(conn);
    if (!conn->lost)
        say_end(conn);
    list_remove(&conn->spare);
    address_limit_leave(&conn->server->addresses, &conn->place);
    timers_clear(loop_timers(conn->server->loop), &conn->timer);
    loop_cancel_deferred(&conn->later);
    outbox_finish(&conn->outbox);
    count_unsent(conn);
    drop_kept(conn);
    connection_drop_secure(conn);
    if (conn->watch.fd >= 0) {
        close(conn->watch.fd);
        conn->server->open_count--;
    }
    conn->watch.fd = -1;
    conn->server->admin_count -= conn->admin;
    loop_defer(conn->server->loop, &conn->later);
}
