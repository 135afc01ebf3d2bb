/* channel.c - resolves a name, connects, and waits for the socket on behalf of TLS.
 *
 *   resolving ─► connecting ─► handshake ─► open
 *                 ▲    │ rejected, or its share of the time has passed
 *                 └────┘ the next address */
#include "net/client/channel.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "net/address.h"
#include "net/client/tls_client.h"

enum { READ_BYTES = 32 * 1024, READS_A_TURN = 8 };

static struct channel *of_watch(struct readiness_watch *watch)
{
    return container_of(watch, struct channel, watch);
}

static void next_turn(struct channel *channel)
{
    loop_defer(channel->options.loop, &channel->later);
}

static void close_socket(struct channel *channel)
{
    if (channel->watch.fd < 0)
        return;
    readiness_watch(channel->options.readiness, &channel->watch, 0);
    close(channel->watch.fd);
    channel->watch.fd = -1;
}

/* ---- the end ---- */

/* Ends a channel that fails or ends by itself; called inside a callback of the loop. */
static void end(struct channel *channel, enum err error)
{
    if (channel->state == CHANNEL_OVER)
        return;
    channel->state = CHANNEL_OVER;
    deadline_clear(channel->options.loop, &channel->deadline);
    readiness_watch(channel->options.readiness, &channel->watch, 0);
    channel->ops->on_end(channel, error);
}

static void end_unreachable(struct channel *channel, const char *reason)
{
    struct buf where = { 0 };
    url_add_authority(&where, channel->options.url);
    explain(&channel->why, ERR_UNREACHABLE, "%.*s: %s", SLICE_ARG(buf_slice(&where)),
            reason);
    buf_finish(&where);
    end(channel, channel->why.code);
}

void channel_close(struct channel *channel)
{
    if (channel->closed)
        return;
    if (channel->state == CHANNEL_OPEN && channel->tls && !channel->lost)
        tls_say_end(channel->tls);
    channel->closed = true;
    channel->state = CHANNEL_OVER;
    deadline_clear(channel->options.loop, &channel->deadline);
    close_socket(channel);
    lookup_end(&channel->lookup);
    next_turn(channel);
}

/* Called after the turn: until then, events reported by the kernel refer to the channel. */
static void channel_finish(struct channel *channel)
{
    tls_destroy(channel->tls);
    channel->tls = NULL;
    channel->ops->on_closed(channel);
}

/* ---- reading and writing ---- */

static void watch(struct channel *channel)
{
    uint32_t events = 0;
    if (channel->state == CHANNEL_CONNECTING)
        events = EPOLLOUT;
    else if (channel->state == CHANNEL_HANDSHAKE)
        events = channel->waits_to_write ? EPOLLOUT : EPOLLIN;
    else if (channel->state == CHANNEL_OPEN)
        events = (!channel->paused || channel->waits_to_read ? EPOLLIN : 0u) |
                 (channel->waits_to_write || (channel->blocked && !channel->waits_to_read)
                      ? EPOLLOUT
                      : 0u);
    if (readiness_watch(channel->options.readiness, &channel->watch, events))
        return;
    explain(&channel->why, ERR_LOST, "cannot use the connection: %s", strerror(errno));
    channel->lost = true;
    next_turn(channel);
}

/* A response may be truncated, so only a close_notify counts as its end; anything else is a
 * failure. */
static enum tls_result note(struct channel *channel, enum tls_result result)
{
    if (result != TLS_CUT && result != TLS_FAILED)
        return result;
    explain(&channel->why, ERR_LOST, "TLS connection lost: %s", tls_reason(channel->tls));
    return TLS_FAILED;
}

static enum tls_result take(struct channel *channel, char *room, size_t size, size_t *len)
{
    *len = 0;
    if (channel->tls)
        return note(channel, tls_read(channel->tls, room, size, len));
    ssize_t got = recv(channel->watch.fd, room, size, MSG_DONTWAIT);
    if (got > 0) {
        *len = (size_t)got;
        return TLS_DONE;
    }
    if (got == 0)
        return TLS_ENDED;
    if (errno == EAGAIN || errno == EINTR)
        return TLS_WANTS_READ;
    explain(&channel->why, ERR_LOST, "connection lost: %s", strerror(errno));
    return TLS_FAILED;
}

/* A short read has emptied the socket, which is reported again if more comes. TLS may hold
 * more. */
static bool may_have_more(const struct channel *channel, size_t len)
{
    return channel->tls || len == READ_BYTES;
}

static bool is_read(const struct channel *channel)
{
    return channel->state == CHANNEL_OPEN && !channel->paused;
}

static void read_some(struct channel *channel)
{
    MEM_UNFILLED char room[READ_BYTES];
    struct timeslice timeslice = loop_timeslice(channel->options.loop);
    enum tls_result result = TLS_DONE;
    size_t len;
    for (int i = 0; i < READS_A_TURN && is_read(channel) && timeslice_left(&timeslice);
         i++) {
        result = take(channel, room, sizeof(room), &len);
        channel->waits_to_write = result == TLS_WANTS_WRITE;
        if (result != TLS_DONE)
            break;
        channel->ops->on_bytes(channel, (struct slice){ room, len });
        if (!may_have_more(channel, len))
            break;
    }
    if (channel->state != CHANNEL_OPEN)
        return;
    if (result == TLS_ENDED)
        end(channel, OK);
    else if (result == TLS_FAILED)
        end(channel, ERR_LOST);
    else if (!channel->paused && channel->tls && tls_has_more(channel->tls) &&
             result == TLS_DONE)
        next_turn(channel); /* the socket does not report it again */
}

static enum tls_result give(struct channel *channel, struct slice bytes, size_t *len)
{
    *len = 0;
    if (channel->tls)
        return note(channel, tls_write(channel->tls, bytes, len));
    ssize_t sent =
        send(channel->watch.fd, bytes.ptr, bytes.len, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
        *len = (size_t)sent;
        return TLS_DONE;
    }
    if (errno == EAGAIN || errno == EINTR || errno == ENOBUFS)
        return TLS_WANTS_WRITE;
    explain(&channel->why, ERR_LOST, "connection lost: %s", strerror(errno));
    return TLS_FAILED;
}

size_t channel_write(struct channel *channel, struct slice bytes)
{
    size_t done = 0;
    if (channel->state != CHANNEL_OPEN || channel->lost)
        return 0;
    while (done < bytes.len && !channel->blocked) {
        size_t len;
        enum tls_result result = give(channel, slice_from(bytes, done), &len);
        done += len;
        channel->waits_to_read = result == TLS_WANTS_READ;
        channel->blocked = result == TLS_WANTS_READ || result == TLS_WANTS_WRITE;
        if (result == TLS_FAILED || result == TLS_ENDED) {
            channel->lost = true; /* read first what the peer sent before */
            next_turn(channel);
            return done;
        }
    }
    watch(channel);
    return done;
}

void channel_write_later(struct channel *channel)
{
    if (channel->state != CHANNEL_OPEN)
        return;
    channel->blocked = true;
    next_turn(channel);
}

void channel_finish_output(struct channel *channel)
{
    if (channel->state != CHANNEL_OPEN || channel->lost)
        return;
    if (channel->tls)
        tls_say_end(channel->tls);
    shutdown(channel->watch.fd, SHUT_WR);
}

void channel_pause(struct channel *channel, bool paused)
{
    if (channel->paused == paused || channel->state != CHANNEL_OPEN)
        return;
    channel->paused = paused;
    watch(channel);
    if (!paused && channel->tls)
        next_turn(channel);
}

static void let_write(struct channel *channel)
{
    channel->blocked = channel->waits_to_read = false;
    channel->ops->on_writable(channel);
    if (channel->state == CHANNEL_OPEN)
        watch(channel);
}

/* A peer that does not read the rest of a request may already have responded to it. */
static void end_lost(struct channel *channel)
{
    struct failure why = channel->why;
    while (is_read(channel)) {
        char room[READ_BYTES];
        size_t len;
        if (take(channel, room, sizeof(room), &len) != TLS_DONE)
            break;
        channel->ops->on_bytes(channel, (struct slice){ room, len });
    }
    if (channel->state == CHANNEL_OVER)
        return;
    channel->why = why;
    end(channel, ERR_LOST);
}

static void on_later(struct deferred *deferred)
{
    struct channel *channel = container_of(deferred, struct channel, later);
    if (channel->closed) {
        channel_finish(channel);
        return;
    }
    if (channel->lost) {
        end_lost(channel);
        return;
    }
    if (channel->state == CHANNEL_OPEN && channel->blocked)
        let_write(channel);
    if (channel->state == CHANNEL_OPEN)
        read_some(channel);
    if (channel->state == CHANNEL_OPEN)
        watch(channel);
}

/* ---- opening ---- */

static void try_next(struct channel *channel);

static void become_open(struct channel *channel)
{
    deadline_clear(channel->options.loop, &channel->deadline);
    channel->state = CHANNEL_OPEN;
    channel->waits_to_write = false;
    watch(channel);
    if (channel->state == CHANNEL_OPEN)
        channel->ops->on_open(channel);
}

static void do_handshake(struct channel *channel)
{
    enum tls_result result = tls_handshake(channel->tls);
    if (result == TLS_FAILED || result == TLS_CUT || result == TLS_ENDED) {
        tls_client_explain(channel->tls, &channel->why);
        if (channel->why.code == ERR_UNTRUSTED) {
            end(channel, ERR_UNTRUSTED);
            return;
        }
        try_next(channel);
        return;
    }
    channel->waits_to_write = result == TLS_WANTS_WRITE;
    if (result == TLS_DONE)
        become_open(channel);
    else
        watch(channel);
}

static void on_connected(struct channel *channel)
{
    if (!channel->options.url->secure) {
        become_open(channel);
        return;
    }
    channel->tls =
        tls_client_create(channel->options.trust, channel->options.url, channel->watch.fd);
    channel->state = CHANNEL_HANDSHAKE;
    if (channel->tls)
        do_handshake(channel);
    else
        end_unreachable(channel, "OpenSSL is out of memory");
}

/* Each address gets half of the remaining time, the last one all of it. */
static void await_address(struct channel *channel)
{
    int64_t left = channel->until_ms - loop_now_ms(channel->options.loop);
    if (channel->address->ai_next)
        left /= 2;
    deadline_set(channel->options.loop, &channel->deadline, left > 0 ? left : 0);
}

static void note_failure(struct channel *channel, const char *reason)
{
    struct address address = address_of_socket(channel->address->ai_addr);
    char text[ADDRESS_TEXT];
    address_print(&address, text);
    explain(&channel->why, ERR_UNREACHABLE, "%s (port %u): %s", text,
            (unsigned)channel->options.url->port, reason);
}

/* Landlock denies connections to ports that are not in its rules. */
static const char *reason_of(int error)
{
    return error == EACCES ? "Permission denied; the sandbox permits only ports that the "
                             "settings of this process name"
                           : strerror(error);
}

/* Returns false if the address cannot even be tried. */
static bool connect_to(struct channel *channel, const struct addrinfo *address)
{
    int on = 1;
    int fd = socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    channel->watch.fd = fd;
    if (fd < 0)
        return false;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    return connect(fd, address->ai_addr, address->ai_addrlen) == 0 || errno == EINPROGRESS;
}

static void try_address(struct channel *channel)
{
    for (; channel->address; channel->address = channel->address->ai_next) {
        if (connect_to(channel, channel->address)) {
            channel->state = CHANNEL_CONNECTING;
            await_address(channel);
            watch(channel);
            return;
        }
        note_failure(channel, reason_of(errno));
        close_socket(channel);
    }
    end(channel, channel->why.code);
}

/* Tries the next address; channel->why has the failure of the last one. */
static void try_next(struct channel *channel)
{
    tls_destroy(channel->tls);
    channel->tls = NULL;
    close_socket(channel);
    channel->address = channel->address->ai_next;
    try_address(channel);
}

static void on_deadline(struct deadline *deadline)
{
    struct channel *channel = container_of(deadline, struct channel, deadline);
    if (channel->state == CHANNEL_RESOLVING) {
        end_unreachable(channel, "timed out while resolving the name");
        return;
    }
    note_failure(channel, "timed out while connecting");
    try_next(channel);
}

static void on_resolved(struct lookup *lookup, int status, const struct addrinfo *addresses)
{
    struct channel *channel = container_of(lookup, struct channel, lookup);
    channel->address = addresses;
    if (channel->state == CHANNEL_OVER)
        return;
    if (status || !addresses)
        end_unreachable(channel, status ? uv_strerror(status) : "the name has no address");
    else
        try_address(channel);
}

static void on_connecting(struct channel *channel)
{
    int error = 0;
    socklen_t size = sizeof(error);
    if (getsockopt(channel->watch.fd, SOL_SOCKET, SO_ERROR, &error, &size))
        error = errno;
    if (error) {
        note_failure(channel, reason_of(error));
        try_next(channel);
    } else {
        on_connected(channel);
    }
}

static void on_ready(struct readiness_watch *watched, uint32_t events)
{
    struct channel *channel = of_watch(watched);
    if (channel->state == CHANNEL_OVER || channel->watch.fd < 0 ||
        !readiness_may_serve(channel->options.readiness, watched))
        return;
    bool broken = events & (EPOLLERR | EPOLLHUP);
    switch (channel->state) {
    case CHANNEL_CONNECTING: on_connecting(channel); return;
    case CHANNEL_HANDSHAKE: do_handshake(channel); return;
    default: break;
    }
    if (channel->blocked &&
        (broken || (events & (channel->waits_to_read ? EPOLLIN : EPOLLOUT))))
        let_write(channel);
    if (channel->state == CHANNEL_OPEN && !channel->lost)
        read_some(channel);
    if (channel->state == CHANNEL_OPEN && (events & EPOLLERR) && channel->paused) {
        explain(&channel->why, ERR_LOST, "connection lost");
        end(channel, ERR_LOST);
    }
    if (channel->state == CHANNEL_OPEN)
        watch(channel);
}

void channel_init(struct channel *channel, const struct channel_options *options,
                  const struct channel_ops *ops)
{
    *channel = (struct channel){ .options = *options,
                                 .ops = ops,
                                 .watch = { .fd = -1, .fn = on_ready },
                                 .lookup = { .done = on_resolved },
                                 .later = { .fn = on_later },
                                 .deadline = { .fn = on_deadline } };
}

void channel_open(struct channel *channel)
{
    const struct channel_options *options = &channel->options;
    channel->until_ms = loop_now_ms(options->loop) + options->connect_ms;
    deadline_set(options->loop, &channel->deadline, options->connect_ms);
    if (!lookup_begin(options->loop, options->url, &channel->lookup))
        deadline_set(options->loop, &channel->deadline, 0);
}
