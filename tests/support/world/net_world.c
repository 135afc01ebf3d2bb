/* net_world.c - opens the server, with TLS or a ring if wanted, and plays its peers. */
#include "tests/support/world/net_world.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/support/world/unit.h"

#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/metrics.h"
#include "net/certificates.h"
#include "net/ring.h"
#include "net/tls.h"
#include "tests/support/world/certificates.h"

enum { TIMEOUT_MS = 30000, WATCHDOG_S = 120, DAY_S = 24 * 3600 };

static bool is_kind(const char *name)
{
    const char *kind = getenv("NET_WORLD");
    return kind && strcmp(kind, name) == 0;
}

bool net_world_is_secure(void)
{
    return is_kind("tls");
}

static void write_key(const struct certificate *certificate, char *template)
{
    int fd = mkstemp(template);
    assert_true(fd >= 0);
    FILE *file = fdopen(fd, "w");
    assert_int_equal(
        PEM_write_PrivateKey(file, certificate->key, NULL, NULL, 0, NULL, NULL), 1);
    fclose(file);
}

struct certificates *net_world_make_certificates(const char *names)
{
    char file[] = "/tmp/net_world.crt.XXXXXX", key[] = "/tmp/net_world.key.XXXXXX";
    struct certificate_files files = { file, key };
    struct certificates *certificates;
    struct certificate certificate;
    struct failure why;
    certificate_init(&certificate, NULL, names, -DAY_S, DAY_S);
    certificate_write(&certificate, file);
    write_key(&certificate, key);
    if (certificates_load(&files, 1, &certificates, &why))
        fail_msg("%s", why.text);
    unlink(file);
    unlink(key);
    certificate_finish(&certificate);
    return certificates;
}

/* They verify nothing: the server is what is tested. */
static SSL_CTX *make_clients(void)
{
    SSL_CTX *clients = SSL_CTX_new(TLS_client_method());
    assert_true(tls_set_up(clients));
    return clients;
}

void net_world_open(struct net_world *world, struct server_options options)
{
    struct failure why = { 0 };
    *world = (struct net_world){ 0 };
    alarm(WATCHDOG_S);               /* a test that waits in vain is killed, and fails */
    metrics[M_HTTP_CONNECTIONS] = 0; /* a failed test has left its own */
    metrics[M_WS_CONNECTIONS] = 0;
    uv_loop_init(&world->uv);
    world->loop = loop_create(&world->uv);
    struct certificates *certificates = NULL;
    struct listen_options any_port = { .host = "127.0.0.1",
                                       .secure = net_world_is_secure() };
    if (!options.listeners) {
        options.listeners = &any_port;
        options.listener_count = 1;
        if (any_port.secure) {
            options.certificates = certificates =
                net_world_make_certificates("DNS:a.example");
            world->clients = make_clients();
        }
    }
    if (is_kind("ring") && ring_create(&world->ring, &why))
        fail_msg("%s", why.text);
    options.ring = world->ring;
    if (server_create(world->loop, &options, &world->server, &why))
        fail_msg("%s", why.text);
    certificates_unref(certificates);
}

/* The server's owner begins with the world. */
void net_world_on_closed(struct server *server)
{
    struct net_world *world = server_owner(server);
    world->closed = true;
}

static bool is_closed(void *owner)
{
    return ((struct net_world *)owner)->closed;
}

void net_world_close(struct net_world *world)
{
    if (!world->closed) {
        server_close(world->server, net_world_on_closed);
        net_world_until(world, is_closed, world);
    }
    alarm(0);
    SSL_CTX_free(world->clients);
    loop_destroy(world->loop);
    uv_run(&world->uv, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&world->uv), 0);
    ring_destroy(world->ring);
    assert_int_equal(metrics[M_HTTP_CONNECTIONS], 0);
    assert_int_equal(metrics[M_WS_CONNECTIONS], 0);
}

void net_world_turn(struct net_world *world)
{
    for (int i = 0; i < 3; i++)
        uv_run(&world->uv, UV_RUN_NOWAIT);
}

bool net_world_waits(struct net_world *world, world_condition *holds, void *owner)
{
    uint64_t end = uv_hrtime() + (uint64_t)TIMEOUT_MS * 1000000;
    while (!holds(owner)) {
        if (uv_hrtime() > end)
            return false;
        struct pollfd backend = { .fd = uv_backend_fd(&world->uv), .events = POLLIN };
        poll(&backend, 1, uv_backend_timeout(&world->uv) == 0 ? 0 : 1);
        net_world_turn(world);
    }
    return true;
}

void net_world_until(struct net_world *world, world_condition *holds, void *owner)
{
    if (!net_world_waits(world, holds, owner))
        fail_msg("waited in vain");
}

struct wait {
    struct peer *peer;
    const char *text;
};

void peer_connect(struct net_world *world, struct peer *peer)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port =
                                       htons((uint16_t)server_port(world->server, 0)),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int on = 1;
    *peer = (struct peer){ .fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) };
    setsockopt(peer->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    assert_int_equal(connect(peer->fd, (struct sockaddr *)&address, sizeof(address)), 0);
    net_world_turn(world); /* accepts */
}

struct shaking {
    struct peer *peer;
    enum tls_result result;
};

static bool has_shaken(void *owner)
{
    struct shaking *shaking = owner;
    shaking->result = tls_handshake(shaking->peer->tls);
    return shaking->result != TLS_WANTS_READ && shaking->result != TLS_WANTS_WRITE;
}

void peer_secure(struct net_world *world, struct peer *peer, SSL_CTX *clients)
{
    SSL *ssl = SSL_new(clients);
    SSL_set_connect_state(ssl);
    peer->tls = tls_create(ssl, peer->fd);
    struct shaking shaking = { peer, TLS_DONE };
    net_world_until(world, has_shaken, &shaking);
    peer->ended = shaking.result != TLS_DONE;
    net_world_turn(world); /* the server has its end of the connection, too */
}

void peer_open(struct net_world *world, struct peer *peer)
{
    peer_connect(world, peer);
    if (world->clients)
        peer_secure(world, peer, world->clients);
}

void peer_close(struct peer *peer)
{
    tls_destroy(peer->tls);
    peer->tls = NULL;
    close(peer->fd);
    peer->fd = -1;
    buf_finish(&peer->got);
}

size_t peer_try_send(struct peer *peer, struct slice bytes)
{
    if (peer->tls) {
        size_t taken;
        enum tls_result result = tls_write(peer->tls, bytes, &taken);
        return result == TLS_FAILED || result == TLS_CUT ? bytes.len : taken;
    }
    ssize_t len = send(peer->fd, bytes.ptr, bytes.len, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (len < 0 && errno != EAGAIN)
        return bytes.len; /* the server has closed */
    return len < 0 ? 0 : (size_t)len;
}

void peer_send(struct net_world *world, struct peer *peer, struct slice bytes)
{
    while (bytes.len) {
        size_t sent = peer_try_send(peer, bytes);
        bytes = slice_from(bytes, sent);
        if (bytes.len) {
            net_world_turn(world);
            peer_read(peer);
        }
    }
}

/* A kernel that has retried for a while reports late what it has accepted. */
static void acknowledge(struct peer *peer)
{
    int on = 1;
    setsockopt(peer->fd, IPPROTO_TCP, TCP_QUICKACK, &on, sizeof(on));
}

static void read_secure(struct peer *peer)
{
    while (!peer->ended) {
        size_t len;
        char *place = buf_reserve(&peer->got, 65536);
        enum tls_result result = tls_read(peer->tls, place, 65536, &len);
        if (result == TLS_WANTS_READ || result == TLS_WANTS_WRITE)
            return;
        peer->got.len += len;
        acknowledge(peer);
        peer->ended = result != TLS_DONE;
        peer->reset = result == TLS_FAILED;
        peer->cut = result == TLS_CUT;
    }
}

void peer_read(struct peer *peer)
{
    if (peer->tls)
        read_secure(peer);
    while (!peer->ended && !peer->tls) {
        char *place = buf_reserve(&peer->got, 65536);
        ssize_t len = recv(peer->fd, place, 65536, MSG_DONTWAIT);
        if (len < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        peer->ended = len <= 0;
        peer->reset = len < 0;
        peer->got.len += len > 0 ? (size_t)len : 0;
    }
}

size_t peer_count(const struct peer *peer, const char *text)
{
    size_t count = 0;
    struct slice rest = buf_slice(&peer->got);
    for (;;) {
        const char *at = memmem(rest.ptr, rest.len, text, strlen(text));
        if (!at)
            return count;
        count++;
        rest = slice_from(rest, (size_t)(at - rest.ptr) + strlen(text));
    }
}

bool peer_has(struct peer *peer, const char *text)
{
    peer_read(peer);
    return memmem(buf_slice(&peer->got).ptr, peer->got.len, text, strlen(text));
}

static bool has_text(void *owner)
{
    struct wait *wait = owner;
    return peer_has(wait->peer, wait->text) || wait->peer->ended;
}

void peer_await(struct net_world *world, struct peer *peer, const char *text)
{
    struct wait wait = { .peer = peer, .text = text };
    net_world_until(world, has_text, &wait);
    if (!peer_has(peer, text))
        fail_msg("ended without '%s': '%.*s'", text, SLICE_ARG(buf_slice(&peer->got)));
}

static bool has_ended(void *owner)
{
    struct wait *wait = owner;
    peer_read(wait->peer);
    return wait->peer->ended;
}

void peer_await_end(struct net_world *world, struct peer *peer)
{
    struct wait wait = { .peer = peer };
    net_world_until(world, has_ended, &wait);
}
