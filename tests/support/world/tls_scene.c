/* tls_scene.c - the server answers hello, later, or at length. */
#include "tests/support/world/tls_scene.h"

#include "net/certificates.h"
#include "net/http/server_state.h"
#include "net/tls.h"
#include "tests/support/world/unit.h"

char tls_scene_letter(size_t place)
{
    return (char)('a' + place % 23);
}

static void on_head(void *owner, struct exchange *x)
{
    (void)owner;
    x->body_limit = 1 << 20;
}

static void on_request(void *owner, struct exchange *x)
{
    struct tls_scene *scene = owner;
    scene->secure = x->secure;
    if (slice_is(x->path, "/wait")) {
        scene->waiting = x;
    } else if (slice_is(x->path, "/long")) {
        struct bytes *body = bytes_create_empty(TLS_SCENE_LONG);
        for (size_t i = 0; i < TLS_SCENE_LONG; i++)
            body->data[i] = tls_scene_letter(i);
        http_trust(x);
        http_reply_shared(x, 200, (struct slice){ 0 }, body);
        bytes_unref(body);
    } else {
        http_reply(x, 200, (struct slice){ 0 }, SLICE("hello"));
    }
}

void tls_scene_open_with(struct tls_scene *scene, struct server_options options,
                         struct listen_options listener)
{
    struct certificates *certificates = net_world_make_certificates("DNS:a.example");
    *scene = (struct tls_scene){ 0 };
    listener.host = "127.0.0.1";
    listener.secure = true;
    options.listeners = &listener;
    options.listener_count = 1;
    options.certificates = certificates;
    options.handler = (struct http_handler){ .on_head = on_head, .on_request = on_request };
    options.owner = scene;
    net_world_open(&scene->world, options);
    certificates_unref(certificates);
    scene->clients = SSL_CTX_new(TLS_client_method());
    tls_set_up(scene->clients);
}

void tls_scene_open(struct tls_scene *scene)
{
    tls_scene_open_with(scene, (struct server_options){ 0 }, (struct listen_options){ 0 });
}

void tls_scene_close(struct tls_scene *scene)
{
    assert_int_equal(scene->world.server->begun_count, 0);
    SSL_CTX_free(scene->clients);
    net_world_close(&scene->world);
}

void tls_scene_open_peer(struct tls_scene *scene, struct peer *peer)
{
    peer_connect(&scene->world, peer);
    peer_secure(&scene->world, peer, scene->clients);
}

void tls_scene_expect_answer(struct tls_scene *scene, struct peer *peer)
{
    buf_clear(&peer->got);
    peer_send(&scene->world, peer, SLICE(TLS_SCENE_GET("/")));
    peer_await(&scene->world, peer, "hello");
}

struct slice tls_scene_hello(SSL_CTX *clients, char *room, int size)
{
    SSL *ssl = SSL_new(clients);
    BIO *in = BIO_new(BIO_s_mem()), *out = BIO_new(BIO_s_mem());
    SSL_set_bio(ssl, in, out);
    SSL_set_connect_state(ssl);
    SSL_do_handshake(ssl);
    int len = BIO_read(out, room, size);
    SSL_free(ssl);
    assert_true(len > 0);
    return (struct slice){ room, (size_t)len };
}
