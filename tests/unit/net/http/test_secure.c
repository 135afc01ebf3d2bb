/* TLS under a connection: handshakes of all kinds, and how a connection ends. */
#include "tests/support/world/unit.h"

#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/metrics.h"
#include "net/certificates.h"
#include "net/http/secure.h"
#include "net/http/server_state.h"
#include "net/tls.h"
#include "tests/support/world/tls_scene.h"

/* ---- handshakes ---- */

static void a_request_through_tls_is_answered(void **state)
{
    static const int versions[] = { TLS1_2_VERSION, TLS1_3_VERSION };
    struct tls_scene scene;
    struct peer peer;
    (void)state;
    tls_scene_open(&scene);
    for (size_t i = 0; i < 2; i++) {
        SSL_CTX_set_max_proto_version(scene.clients, versions[i]);
        tls_scene_open_peer(&scene, &peer);
        assert_false(peer.ended);
        assert_int_equal(SSL_version(tls_ssl(peer.tls)), versions[i]);
        tls_scene_expect_answer(&scene, &peer);
        assert_true(scene.secure);
        tls_scene_expect_answer(&scene, &peer);
        peer_close(&peer);
    }
    tls_scene_close(&scene);
}

static void older_versions_are_refused(void **state)
{
    struct tls_scene scene;
    struct peer peer;
    int64_t failed = metrics[M_TLS_FAILED];
    (void)state;
    tls_scene_open(&scene);
    SSL_CTX_set_security_level(scene.clients, 0);
    SSL_CTX_set_min_proto_version(scene.clients, TLS1_VERSION);
    SSL_CTX_set_max_proto_version(scene.clients, TLS1_1_VERSION);
    tls_scene_open_peer(&scene, &peer);
    assert_true(peer.ended);
    assert_int_equal(metrics[M_TLS_FAILED], failed + 1);
    peer_close(&peer);
    tls_scene_close(&scene);
}

/* Each turn gets one byte of the ClientHello, and must not do a costly step for it. */
static void client_hello_may_arrive_byte_by_byte(void **state)
{
    struct tls_scene scene;
    struct peer peer;
    char room[4096];
    (void)state;
    tls_scene_open(&scene);
    struct slice hello = tls_scene_hello(scene.clients, room, sizeof(room));
    peer_connect(&scene.world, &peer);
    for (size_t i = 0; i < hello.len; i++) {
        peer_read(&peer);
        assert_int_equal(peer.got.len, 0);
        peer_send(&scene.world, &peer, (struct slice){ hello.ptr + i, 1 });
        net_world_turn(&scene.world);
    }
    peer_await(&scene.world, &peer,
               "\x16\x03\x03"); /* a record of the server's handshake */
    assert_false(peer.ended);
    peer_close(&peer);
    net_world_turn(&scene.world);
    tls_scene_close(&scene);
}

static void invalid_handshake_closes_the_connection(void **state)
{
    static const struct slice bad[] = {
        SLICE("\x16\x03\x01\xff\xff garbage of a length that no record has"),
        SLICE("\x16\x03\x01\x00\x04\x01\x03\xff\xff a hello of 256 KiB"),
        SLICE("\x16\x03\x01\x00\x05\x02\x00\x00\x01\x00 what a server would say"),
        SLICE("\x17\x03\x03\x00\x05hello"),
        SLICE("\x15\x03\x03\x00\x02\x02\x28"),
        SLICE("\x80\x2e\x01\x03\x01\x00\x15\x00\x00\x00\x10 SSL 2"),
        SLICE("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"),
        SLICE("\xff\xff\xff\xff\xff\xff\xff\xff\xff"),
    };
    struct tls_scene scene;
    (void)state;
    tls_scene_open(&scene);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct peer peer;
        peer_connect(&scene.world, &peer);
        peer_send(&scene.world, &peer, bad[i]);
        peer_await_end(&scene.world, &peer);
        peer_close(&peer);
    }
    tls_scene_close(&scene);
}

static void plain_http_gets_a_hint_to_use_https(void **state)
{
    static const struct slice requests[] = { SLICE(TLS_SCENE_GET("/")),
                                             SLICE("DELETE / HTTP/1.1\r\n"),
                                             SLICE("options * HTTP/1.1\r\n\r\n") };
    struct tls_scene scene;
    (void)state;
    tls_scene_open(&scene);
    for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
        struct peer peer;
        peer_connect(&scene.world, &peer);
        peer_send(&scene.world, &peer, requests[i]);
        peer_await_end(&scene.world, &peer);
        assert_true(peer_has(&peer, "HTTP/1.1 400 "));
        assert_true(peer_has(&peer, "begin the address with https://"));
        assert_false(peer.reset);
        peer_close(&peer);
    }
    tls_scene_close(&scene);
}

/* ---- what is agreed on ---- */

static void client_of_other_alpn_protocols_is_rejected(void **state)
{
    static const struct {
        struct slice offer;
        bool taken;
    } rows[] = { { SLICE("\x08http/1.1"), true },
                 { SLICE("\x02h2\x08http/1.1"), true },
                 { SLICE("\x02h2"), false } };
    struct tls_scene scene;
    (void)state;
    tls_scene_open(&scene);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct peer peer;
        const unsigned char *chosen;
        unsigned len;
        SSL_CTX_set_alpn_protos(scene.clients, (const unsigned char *)rows[i].offer.ptr,
                                (unsigned)rows[i].offer.len);
        tls_scene_open_peer(&scene, &peer);
        assert_int_equal(!peer.ended, rows[i].taken);
        SSL_get0_alpn_selected(tls_ssl(peer.tls), &chosen, &len);
        assert_int_equal(len, rows[i].taken ? 8 : 0);
        peer_close(&peer);
    }
    tls_scene_close(&scene);
}

static void renegotiation_is_refused(void **state)
{
    struct tls_scene scene;
    struct peer peer;
    (void)state;
    tls_scene_open(&scene);
    SSL_CTX_set_max_proto_version(scene.clients, TLS1_2_VERSION);
    SSL_CTX_clear_options(scene.clients, SSL_OP_NO_RENEGOTIATION);
    int64_t shaken = metrics[M_TLS_FULL];
    tls_scene_open_peer(&scene, &peer);
    SSL_renegotiate(tls_ssl(peer.tls));
    for (int i = 0; i < 10; i++) {
        tls_handshake(peer.tls);
        net_world_turn(&scene.world);
        peer_read(&peer);
    }
    assert_int_equal(metrics[M_TLS_FULL], shaken + 1);
    peer_close(&peer);
    tls_scene_open_peer(&scene, &peer);
    tls_scene_expect_answer(&scene, &peer);
    peer_close(&peer);
    tls_scene_close(&scene);
}

/* Keeps the peer's session for peers that connect later. */
static int keep_session(SSL *ssl, SSL_SESSION *session)
{
    SSL_SESSION **kept = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));
    SSL_SESSION_free(*kept);
    *kept = session;
    return 1;
}

static void resume(struct tls_scene *scene, SSL_SESSION *session)
{
    struct peer peer;
    SSL *ssl = SSL_new(scene->clients);
    peer_connect(&scene->world, &peer);
    SSL_set_session(ssl, session);
    SSL_set_connect_state(ssl);
    peer.tls = tls_create(ssl, peer.fd);
    for (enum tls_result result = TLS_WANTS_READ; result != TLS_DONE;) {
        result = tls_handshake(peer.tls);
        net_world_turn(&scene->world);
    }
    tls_scene_expect_answer(scene, &peer);
    peer_close(&peer);
}

static void session_ticket_is_valid_until_the_certificates_change(void **state)
{
    struct tls_scene scene;
    struct peer peer;
    SSL_SESSION *session = NULL;
    (void)state;
    tls_scene_open(&scene);
    SSL_CTX_set_app_data(scene.clients, &session);
    SSL_CTX_set_session_cache_mode(scene.clients, SSL_SESS_CACHE_CLIENT);
    SSL_CTX_sess_set_new_cb(scene.clients, keep_session);
    tls_scene_open_peer(&scene, &peer);
    tls_scene_expect_answer(&scene, &peer);
    tls_say_end(peer.tls); /* otherwise the client would not use its session again */
    peer_close(&peer);
    assert_non_null(session);
    int64_t resumed = metrics[M_TLS_RESUMED], full = metrics[M_TLS_FULL];
    resume(&scene, session);
    assert_int_equal(metrics[M_TLS_RESUMED], resumed + 1);
    struct certificates *others = net_world_make_certificates("DNS:a.example");
    server_show(scene.world.server, others);
    certificates_unref(others);
    resume(&scene, session);
    assert_int_equal(metrics[M_TLS_RESUMED], resumed + 1);
    assert_int_equal(metrics[M_TLS_FULL], full + 1);
    SSL_SESSION_free(session);
    tls_scene_close(&scene);
}

static long serial_of(const struct peer *peer)
{
    X509 *x509 = SSL_get1_peer_certificate(tls_ssl(peer->tls));
    long serial = ASN1_INTEGER_get(X509_get0_serialNumber(x509));
    X509_free(x509);
    return serial;
}

static void new_certificates_apply_to_new_connections(void **state)
{
    struct tls_scene scene;
    struct peer old, handshaking, fresh;
    char room[4096];
    (void)state;
    tls_scene_open(&scene);
    tls_scene_open_peer(&scene, &old);
    peer_connect(&scene.world, &handshaking);
    peer_send(&scene.world, &handshaking,
              tls_scene_hello(scene.clients, room, sizeof(room)));
    struct certificates *others = net_world_make_certificates("DNS:b.example");
    server_show(scene.world.server, others);
    certificates_unref(others);
    tls_scene_open_peer(&scene, &fresh);
    assert_int_not_equal(serial_of(&old), serial_of(&fresh));
    tls_scene_expect_answer(&scene, &old);
    tls_scene_expect_answer(&scene, &fresh);
    peer_await(&scene.world, &handshaking, "\x16\x03\x03");
    peer_close(&handshaking);
    peer_close(&old);
    peer_close(&fresh);
    net_world_turn(&scene.world);
    tls_scene_close(&scene);
}

/* ---- ends ---- */

static void close_notify_is_sent_at_the_end(void **state)
{
    struct tls_scene scene;
    struct peer peer;
    (void)state;
    tls_scene_open(&scene);
    tls_scene_open_peer(&scene, &peer);
    peer_send(&scene.world, &peer,
              SLICE("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"));
    peer_await_end(&scene.world, &peer);
    assert_true(peer_has(&peer, "hello"));
    assert_false(peer.cut || peer.reset);
    peer_close(&peer);
    tls_scene_close(&scene);
}

/* After part of a response, no end may look like a complete one. */
static void truncated_answer_has_no_close_notify(void **state)
{
    struct tls_scene scene;
    struct peer peer;
    (void)state;
    tls_scene_open(&scene);
    tls_scene_open_peer(&scene, &peer);
    peer_send(&scene.world, &peer, SLICE(TLS_SCENE_GET("/long")));
    peer_await(&scene.world, &peer, "abcd");
    assert_true(peer.got.len < TLS_SCENE_LONG);
    server_close(scene.world.server, net_world_on_closed);
    while (!scene.world.closed)
        net_world_turn(&scene.world);
    peer_await_end(&scene.world, &peer);
    assert_true(peer.got.len < TLS_SCENE_LONG);
    assert_true(peer.cut || peer.reset);
    peer_close(&peer);
    SSL_CTX_free(scene.clients);
    net_world_close(&scene.world);
}

static void half_closed_tls_peer_gets_its_answer(void **state)
{
    struct tls_scene scene;
    (void)state;
    tls_scene_open(&scene);
    for (int said = 0; said < 2; said++) {
        struct peer peer;
        tls_scene_open_peer(&scene, &peer);
        peer_send(&scene.world, &peer, SLICE(TLS_SCENE_GET("/wait")));
        while (!scene.waiting)
            net_world_turn(&scene.world);
        if (said)
            tls_say_end(peer.tls);
        else
            shutdown(peer.fd, SHUT_WR);
        while (!scene.waiting->gone)
            net_world_turn(&scene.world);
        http_reply(scene.waiting, 200, (struct slice){ 0 }, SLICE("late"));
        scene.waiting = NULL;
        peer_await_end(&scene.world, &peer);
        assert_true(peer_has(&peer, "late"));
        assert_false(peer.cut || peer.reset);
        peer_close(&peer);
    }
    tls_scene_close(&scene);
}

static void slow_reader_gets_the_whole_answer(void **state)
{
    struct tls_scene scene;
    struct peer peer;
    (void)state;
    tls_scene_open(&scene);
    tls_scene_open_peer(&scene, &peer);
    peer_send(&scene.world, &peer, SLICE(TLS_SCENE_GET("/long")));
    for (int i = 0; i < 50; i++)
        net_world_turn(&scene.world); /* the sockets are full */
    struct connection *conn =
        container_of(scene.world.server->connections.next, struct connection, link);
    assert_true(outbox_unsent(&conn->outbox) > TLS_SCENE_LONG / 4);
    while (peer.got.len < TLS_SCENE_LONG || outbox_unsent(&conn->outbox)) {
        net_world_turn(&scene.world);
        peer_read(&peer);
        assert_false(peer.ended);
    }
    struct slice body = slice_from(buf_slice(&peer.got), peer.got.len - TLS_SCENE_LONG);
    for (size_t i = 0; i < TLS_SCENE_LONG; i++)
        if (body.ptr[i] != tls_scene_letter(i))
            fail_msg("byte %zu is another one", i);
    tls_scene_expect_answer(&scene, &peer);
    peer_close(&peer);
    tls_scene_close(&scene);
}

static void a_broken_record_ends_the_connection(void **state)
{
    struct tls_scene scene;
    struct peer peer;
    (void)state;
    tls_scene_open(&scene);
    tls_scene_open_peer(&scene, &peer);
    assert_int_equal(send(peer.fd, "\x17\x03\x03\x00\x20not what the keys would say.....",
                          37, MSG_NOSIGNAL),
                     37);
    peer_await_end(&scene.world, &peer);
    peer_close(&peer);
    tls_scene_close(&scene);
}

/* ---- behind a proxy that speaks first ---- */

static void proxy_header_comes_before_tls(void **state)
{
    static const char header[] = "\r\n\r\n\0\r\nQUIT\n\x21\x11\x00\x0c"
                                 "\xcb\x00\x71\x07\x7f\x00\x00\x01\x10\x00\x01\xbb";
    struct tls_scene scene;
    (void)state;
    for (size_t step = 1; step <= sizeof(header) - 1; step += sizeof(header) - 2) {
        struct peer peer;
        tls_scene_open_with(&scene, (struct server_options){ 0 },
                            (struct listen_options){ .proxied = true });
        peer_connect(&scene.world, &peer);
        for (size_t i = 0; i < sizeof(header) - 1; i += step) {
            peer_send(&scene.world, &peer, (struct slice){ header + i, step });
            net_world_turn(&scene.world);
        }
        peer_secure(&scene.world, &peer, scene.clients);
        tls_scene_expect_answer(&scene, &peer);
        peer_close(&peer);
        tls_scene_close(&scene);
    }
}
int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_through_tls_is_answered),
        cmocka_unit_test(older_versions_are_refused),
        cmocka_unit_test(client_hello_may_arrive_byte_by_byte),
        cmocka_unit_test(invalid_handshake_closes_the_connection),
        cmocka_unit_test(plain_http_gets_a_hint_to_use_https),
        cmocka_unit_test(client_of_other_alpn_protocols_is_rejected),
        cmocka_unit_test(renegotiation_is_refused),
        cmocka_unit_test(session_ticket_is_valid_until_the_certificates_change),
        cmocka_unit_test(new_certificates_apply_to_new_connections),
        cmocka_unit_test(close_notify_is_sent_at_the_end),
        cmocka_unit_test(truncated_answer_has_no_close_notify),
        cmocka_unit_test(half_closed_tls_peer_gets_its_answer),
        cmocka_unit_test(slow_reader_gets_the_whole_answer),
        cmocka_unit_test(a_broken_record_ends_the_connection),
        cmocka_unit_test(proxy_header_comes_before_tls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
