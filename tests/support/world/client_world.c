/* client_world.c - the client's loop, and sockets of the far side that never block. */
#include "tests/support/world/client_world.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/support/world/certificates.h"
#include "tests/support/world/unit.h"

enum { TIMEOUT_MS = 30000, WATCHDOG_S = 120, ROOM = 64 * 1024, FDS_MAX = 1024 };

void client_world_open(struct client_world *world)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof(address);
    struct failure why;
    char text[64];
    *world = (struct client_world){ 0 };
    alarm(WATCHDOG_S);        /* a test that waits in vain is killed, and fails */
    signal(SIGPIPE, SIG_IGN); /* OpenSSL on the far side may write to a closed socket */
    uv_loop_init(&world->uv);
    world->loop = loop_create(&world->uv);
    world->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_int_equal(bind(world->listener, (struct sockaddr *)&address, sizeof(address)),
                     0);
    assert_int_equal(listen(world->listener, 64), 0);
    getsockname(world->listener, (struct sockaddr *)&address, &size);
    world->port = ntohs(address.sin_port);
    snprintf(text, sizeof(text), "http://127.0.0.1:%d", world->port);
    assert_int_equal(url_read(slice_of(text), &world->url, &why), OK);
}

static void on_closed(void *owner)
{
    struct client_world *world = owner;
    world->closed = true;
}

static bool is_closed(void *owner)
{
    return ((struct client_world *)owner)->closed;
}

void client_world_close(struct client_world *world)
{
    if (world->fetcher) {
        fetcher_close(world->fetcher, on_closed, world);
        assert_false(world->closed);
        client_world_until(world, is_closed, world);
    }
    alarm(0);
    if (world->listener >= 0)
        close(world->listener);
    SSL_CTX_free(world->tls);
    loop_destroy(world->loop);
    uv_run(&world->uv, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&world->uv), 0);
}

void client_world_secure(struct client_world *world, const struct certificate *certificate,
                         const char *host)
{
    struct failure why;
    char text[128];
    world->tls = SSL_CTX_new(TLS_server_method());
    assert_int_equal(SSL_CTX_use_certificate(world->tls, certificate->x509), 1);
    assert_int_equal(SSL_CTX_use_PrivateKey(world->tls, certificate->key), 1);
    snprintf(text, sizeof(text), "https://%s:%d", host, world->port);
    assert_int_equal(url_read(slice_of(text), &world->url, &why), OK);
}

void client_world_fetcher(struct client_world *world, struct fetcher_options options)
{
    struct failure why;
    options.url = &world->url;
    if (fetcher_create(world->loop, &options, &world->fetcher, &why))
        fail_msg("%s", why.text);
}

void client_world_turn(struct client_world *world)
{
    for (int i = 0; i < 3; i++)
        uv_run(&world->uv, UV_RUN_NOWAIT);
}

void client_world_until(struct client_world *world, client_condition *holds, void *owner)
{
    uint64_t end = uv_hrtime() + (uint64_t)TIMEOUT_MS * 1000000;
    while (!holds(owner)) {
        if (uv_hrtime() > end)
            fail_msg("waited in vain");
        struct pollfd backend = { .fd = uv_backend_fd(&world->uv), .events = POLLIN };
        poll(&backend, 1, uv_backend_timeout(&world->uv) == 0 ? 0 : 1);
        client_world_turn(world);
    }
}

/* ---- the far side ---- */

struct far_wait {
    struct client_world *world;
    struct far *far;
    const char *text;
};

static bool has_accepted(void *owner)
{
    struct far_wait *wait = owner;
    wait->far->fd =
        accept4(wait->world->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    return wait->far->fd >= 0;
}

void far_accept(struct client_world *world, struct far *far)
{
    struct far_wait wait = { world, far, NULL };
    *far = (struct far){ .fd = -1 };
    client_world_until(world, has_accepted, &wait);
    if (!world->tls)
        return;
    far->tls = SSL_new(world->tls);
    SSL_set_fd(far->tls, far->fd);
    SSL_set_accept_state(far->tls);
}

bool far_is_alone(struct client_world *world)
{
    client_world_turn(world);
    int fd = accept4(world->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0)
        close(fd);
    return fd < 0;
}

void far_close(struct far *far)
{
    if (far->tls)
        SSL_shutdown(far->tls);
    SSL_free(far->tls);
    ERR_clear_error();
    close(far->fd);
    buf_finish(&far->got);
    far->tls = NULL;
    far->fd = -1;
}

void far_break(struct far *far)
{
    struct linger now = { 1, 0 };
    setsockopt(far->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    SSL_free(far->tls);
    far->tls = NULL;
    far_close(far);
}

/* Returns -1 with EAGAIN if there is nothing now. */
static ssize_t take(struct far *far, char *room)
{
    if (!far->tls)
        return recv(far->fd, room, ROOM, MSG_DONTWAIT);
    ERR_clear_error();
    int len = SSL_read(far->tls, room, ROOM);
    int error = SSL_get_error(far->tls, len);
    if (len > 0)
        return len;
    errno =
        error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE ? EAGAIN : ECONNRESET;
    return error == SSL_ERROR_ZERO_RETURN ? 0 : -1;
}

void far_read(struct far *far)
{
    while (!far->ended) {
        ssize_t len = take(far, buf_reserve(&far->got, ROOM));
        if (len < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        far->ended = len <= 0;
        far->reset = len < 0;
        far->got.len += len > 0 ? (size_t)len : 0;
    }
}

bool far_has(struct far *far, const char *text)
{
    far_read(far);
    return far->got.len && memmem(far->got.ptr, far->got.len, text, strlen(text));
}

static bool has_text(void *owner)
{
    struct far_wait *wait = owner;
    return far_has(wait->far, wait->text) || wait->far->ended;
}

void far_await(struct client_world *world, struct far *far, const char *text)
{
    struct far_wait wait = { world, far, text };
    client_world_until(world, has_text, &wait);
    if (!far_has(far, text))
        fail_msg("not '%s' but '%.*s'", text, SLICE_ARG(buf_slice(&far->got)));
}

static bool has_ended(void *owner)
{
    struct far_wait *wait = owner;
    far_read(wait->far);
    return wait->far->ended;
}

void far_await_end(struct client_world *world, struct far *far)
{
    struct far_wait wait = { world, far, NULL };
    client_world_until(world, has_ended, &wait);
}

static ssize_t give(struct far *far, struct slice bytes)
{
    if (!far->tls)
        return send(far->fd, bytes.ptr, bytes.len, MSG_NOSIGNAL | MSG_DONTWAIT);
    ERR_clear_error();
    int len = SSL_write(far->tls, bytes.ptr, (int)bytes.len);
    int error = SSL_get_error(far->tls, len);
    errno = error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE ? EAGAIN : EPIPE;
    return len > 0 ? len : -1;
}

void far_send(struct client_world *world, struct far *far, struct slice bytes)
{
    while (bytes.len) {
        ssize_t len = give(far, bytes);
        if (len < 0 && errno != EAGAIN)
            return; /* the peer has closed */
        bytes = slice_from(bytes, len > 0 ? (size_t)len : 0);
        client_world_turn(world);
    }
}

void far_say(struct client_world *world, struct far *far, const char *text)
{
    far_send(world, far, slice_of(text));
}

static int client_socket(const struct client_world *world, const struct far *far)
{
    for (int fd = 0; fd < FDS_MAX; fd++) {
        struct sockaddr_in peer;
        socklen_t size = sizeof(peer);
        if (fd != far->fd && !getpeername(fd, (struct sockaddr *)&peer, &size) &&
            peer.sin_family == AF_INET && ntohs(peer.sin_port) == world->port)
            return fd;
    }
    fail_msg("no connection is open");
    return -1;
}

/* The system moves bytes from one side to the other a moment later. */
void far_fill(const struct client_world *world, const struct far *far)
{
    static const char room[ROOM];
    int fd = client_socket(world, far);
    for (unsigned fails = 0; fails < 3; fails++) {
        while (send(fd, room, sizeof(room), MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
            fails = 0;
        poll(NULL, 0, 1);
    }
}

/* ---- requests ---- */

static void on_done(struct fetch *fetch)
{
    struct probe *probe = container_of(fetch, struct probe, fetch);
    probe->done++;
    probe->error = fetch->error;
    probe->status = fetch->status;
    snprintf(probe->why, sizeof(probe->why), "%s", fetch->why ? fetch->why : "");
    assert_int_equal(fetch->error != OK, fetch->why != NULL);
    buf_clear(&probe->body);
    if (fetch->answer)
        buf_add(&probe->body, bytes_slice(fetch->answer));
    buf_clear(&probe->header);
    if (probe->probe_header)
        buf_add(&probe->header, fetch_header(fetch, probe->probe_header));
}

void probe_begin(struct client_world *world, struct probe *probe, const char *target)
{
    struct failure why;
    probe->done = 0;
    probe->fetch.target = slice_of(target);
    probe->fetch.done = on_done;
    if (fetch_begin(world->fetcher, &probe->fetch, &why))
        fail_msg("%s", why.text);
    assert_int_equal(probe->done, 0);
}

static bool is_done(void *owner)
{
    return ((struct probe *)owner)->done > 0;
}

void probe_await(struct client_world *world, struct probe *probe)
{
    client_world_until(world, is_done, probe);
    assert_int_equal(probe->done, 1);
}

void probe_expect(struct client_world *world, struct probe *probe, int status,
                  const char *body)
{
    probe_await(world, probe);
    if (probe->error)
        fail_msg("%s", probe->why);
    assert_int_equal(probe->status, status);
    if (!slice_is(buf_slice(&probe->body), body))
        fail_msg("not '%s' but '%.*s'", body, SLICE_ARG(buf_slice(&probe->body)));
}

void probe_expect_error(struct client_world *world, struct probe *probe, enum err error)
{
    probe_await(world, probe);
    if (probe->error != error)
        fail_msg("not '%s' but '%s': %s", errors[error].text, errors[probe->error].text,
                 probe->why);
}

void probe_finish(struct probe *probe)
{
    buf_finish(&probe->body);
    buf_finish(&probe->header);
}
