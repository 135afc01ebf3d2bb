/* Which servers a client trusts: certificates of all kinds, over real TLS. */
#include "tests/support/world/unit.h"

#include <openssl/ssl.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/support/world/certificates.h"
#include "tests/support/world/client_world.h"

enum { DAY = 24 * 3600 };

#define BOTH "DNS:localhost,IP:127.0.0.1"

static struct client_world world;
static struct probe probe;
static struct certificate authority, stranger;
static char ca_file[] = "/tmp/test_fetch_tls.XXXXXX";
static struct trust *trust;

static int prepare(void **state)
{
    struct failure why;
    (void)state;
    certificate_init(&authority, NULL, NULL, -DAY, DAY);
    certificate_init(&stranger, NULL, NULL, -DAY, DAY);
    certificate_write(&authority, ca_file);
    assert_int_equal(trust_create(ca_file, &trust, &why), OK);
    return 0;
}

static int tidy(void **state)
{
    (void)state;
    unlink(ca_file);
    certificate_finish(&authority);
    certificate_finish(&stranger);
    trust_destroy(trust);
    return 0;
}

/* Opens a world whose server has a certificate with these properties. */
static void open_world(const char *host, const struct certificate *issuer,
                       const char *names, int64_t from_s, int64_t to_s)
{
    struct certificate certificate;
    client_world_open(&world);
    probe = (struct probe){ 0 };
    certificate_init(&certificate, issuer, names, from_s, to_s);
    client_world_secure(&world, &certificate, host);
    certificate_finish(&certificate);
}

static void close_world(void)
{
    client_world_close(&world);
    probe_finish(&probe);
}

/* Lets the server's part of the handshake run along with the client's. */
static bool shakes(void *owner)
{
    far_read(owner);
    return probe.done || ((struct far *)owner)->got.len;
}

static void expect_refusal(const struct trust *with, enum err error, const char *reason)
{
    struct far far;
    client_world_fetcher(&world, (struct fetcher_options){ .trust = with });
    probe_begin(&world, &probe, "/secret");
    far_accept(&world, &far);
    client_world_until(&world, shakes, &far);
    probe_expect_error(&world, &probe, error);
    if (!strstr(probe.why, reason))
        fail_msg("not '%s' but '%s'", reason, probe.why);
    assert_int_equal(far.got.len, 0); /* no byte of the request was sent */
    assert_null(strstr(probe.why, "secret"));
    far_close(&far);
    close_world();
}

static void trusted_server_is_accepted(void **state)
{
    static const char *const hosts[] = { "localhost", "127.0.0.1" };
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct far far;
        open_world(hosts[i], &authority, BOTH, -DAY, DAY);
        client_world_fetcher(&world, (struct fetcher_options){ .trust = trust });
        for (int round = 0; round < 2; round++) {
            probe_begin(&world, &probe, "/");
            if (!round)
                far_accept(&world, &far);
            far_await(&world, &far, "\r\n\r\n");
            buf_clear(&far.got);
            far_say(&world, &far, "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello");
            probe_expect(&world, &probe, 200, "hello");
        }
        const char *name = SSL_get_servername(far.tls, TLSEXT_NAMETYPE_host_name);
        if (i == 0)
            assert_string_equal(name, "localhost");
        else
            assert_null(name); /* addresses are not named (RFC 6066 §3) */
        far_close(&far);
        close_world();
    }
}

static void large_bodies_go_both_ways_over_tls(void **state)
{
    enum { LEN = 2000000 };
    struct far far;
    struct bytes *body = bytes_create_empty(LEN);
    (void)state;
    memset(body->data, 'u', LEN);
    open_world("localhost", &authority, BOTH, -DAY, DAY);
    client_world_fetcher(&world, (struct fetcher_options){ .trust = trust });
    probe.fetch.method = "POST";
    probe.fetch.body = body;
    probe.fetch.answer_max = LEN;
    probe_begin(&world, &probe, "/");
    far_accept(&world, &far);
    far_await(&world, &far, "\r\n\r\n");
    while (far.got.len < LEN || far.got.ptr[far.got.len - 1] != 'u' ||
           far.got.len <
               LEN + (size_t)((char *)memmem(far.got.ptr, far.got.len, "\r\n\r\n", 4) + 4 -
                              far.got.ptr)) {
        client_world_turn(&world);
        far_read(&far);
    }
    far_say(&world, &far, "HTTP/1.1 200 OK\r\ncontent-length: 2000000\r\n\r\n");
    far_send(&world, &far, bytes_slice(body));
    probe_await(&world, &probe);
    assert_int_equal(probe.error, OK);
    assert_true(slice_equal(buf_slice(&probe.body), bytes_slice(body)));
    bytes_unref(body);
    far_close(&far);
    close_world();
}

static void untrusted_server_receives_no_request(void **state)
{
    struct trust *system;
    struct failure why;
    (void)state;
    open_world("localhost", &authority, BOTH, -2 * DAY, -DAY);
    expect_refusal(trust, ERR_UNTRUSTED, "expired");
    open_world("localhost", &authority, BOTH, DAY, 2 * DAY);
    expect_refusal(trust, ERR_UNTRUSTED, "not yet valid");
    open_world("localhost", &authority, "DNS:other.example", -DAY, DAY);
    expect_refusal(trust, ERR_UNTRUSTED, "hostname mismatch");
    open_world("localhost", &authority, "DNS:*", -DAY, DAY);
    expect_refusal(trust, ERR_UNTRUSTED, "hostname mismatch");
    open_world("127.0.0.1", &authority, "DNS:localhost,IP:127.0.0.2", -DAY, DAY);
    expect_refusal(trust, ERR_UNTRUSTED, "IP address mismatch");
    open_world("localhost", &stranger, BOTH, -DAY, DAY);
    expect_refusal(trust, ERR_UNTRUSTED, "issuer");
    open_world("localhost", NULL, BOTH, -DAY, DAY);
    expect_refusal(trust, ERR_UNTRUSTED, "self");
    assert_int_equal(trust_create(NULL, &system, &why), OK);
    open_world("localhost", &authority, BOTH, -DAY, DAY);
    expect_refusal(system, ERR_UNTRUSTED, "issuer");
    trust_destroy(system);
}

static void old_tls_version_is_rejected(void **state)
{
    (void)state;
    open_world("localhost", &authority, BOTH, -DAY, DAY);
    SSL_CTX_set_max_proto_version(world.tls, TLS1_1_VERSION);
    expect_refusal(trust, ERR_UNREACHABLE, "TLS");
}

static void a_server_without_tls_is_unreachable(void **state)
{
    struct far far;
    (void)state;
    open_world("localhost", &authority, BOTH, -DAY, DAY);
    client_world_fetcher(&world, (struct fetcher_options){ .trust = trust });
    probe_begin(&world, &probe, "/");
    SSL_CTX *tls = world.tls;
    world.tls = NULL; /* no TLS from here on */
    far_accept(&world, &far);
    far_say(&world, &far, "HTTP/1.1 400 Bad\r\n\r\n");
    probe_expect_error(&world, &probe, ERR_UNREACHABLE);
    far_close(&far);
    world.tls = tls;
    close_world();
}

static void silent_server_times_out_as_unreachable(void **state)
{
    struct far far;
    (void)state;
    open_world("127.0.0.1", &authority, BOTH, -DAY, DAY);
    client_world_fetcher(&world,
                         (struct fetcher_options){ .trust = trust, .connect_ms = 300 });
    probe_begin(&world, &probe, "/");
    far_accept(&world, &far);
    probe_expect_error(&world, &probe, ERR_UNREACHABLE);
    far_close(&far);
    close_world();
}

static void response_without_close_notify_is_incomplete(void **state)
{
    (void)state;
    for (int cut = 0; cut < 2; cut++) {
        struct far far;
        open_world("localhost", &authority, BOTH, -DAY, DAY);
        client_world_fetcher(&world, (struct fetcher_options){ .trust = trust });
        probe_begin(&world, &probe, "/");
        far_accept(&world, &far);
        far_await(&world, &far, "\r\n\r\n");
        far_say(&world, &far, "HTTP/1.0 200 OK\r\n\r\nhello"); /* closing ends the body */
        if (cut) {
            SSL_free(far.tls); /* no close_notify */
            far.tls = NULL;
        }
        far_close(&far);
        if (cut)
            probe_expect_error(&world, &probe, ERR_LOST);
        else
            probe_expect(&world, &probe, 200, "hello");
        close_world();
    }
}

static void request_can_be_canceled_during_the_handshake(void **state)
{
    struct far far;
    (void)state;
    open_world("127.0.0.1", &authority, BOTH, -DAY, DAY);
    client_world_fetcher(&world, (struct fetcher_options){ .trust = trust });
    probe_begin(&world, &probe, "/");
    far_accept(&world, &far);
    client_world_turn(&world);
    fetch_cancel(&probe.fetch);
    probe_expect_error(&world, &probe, ERR_CANCELED);
    far_close(&far);
    close_world();
}

static void invalid_trust_settings_are_rejected(void **state)
{
    struct trust *none;
    struct failure why;
    struct fetcher *fetcher;
    (void)state;
    assert_int_equal(trust_create("/nowhere/ca.pem", &none, &why), ERR_INVALID);
    assert_non_null(strstr(why.text, "/nowhere/ca.pem"));
    open_world("localhost", &authority, BOTH, -DAY, DAY);
    assert_int_equal(fetcher_create(world.loop,
                                    &(struct fetcher_options){ .url = &world.url },
                                    &fetcher, &why),
                     ERR_INVALID);
    close_world();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trusted_server_is_accepted),
        cmocka_unit_test(large_bodies_go_both_ways_over_tls),
        cmocka_unit_test(untrusted_server_receives_no_request),
        cmocka_unit_test(old_tls_version_is_rejected),
        cmocka_unit_test(a_server_without_tls_is_unreachable),
        cmocka_unit_test(silent_server_times_out_as_unreachable),
        cmocka_unit_test(response_without_close_notify_is_incomplete),
        cmocka_unit_test(request_can_be_canceled_during_the_handshake),
        cmocka_unit_test(invalid_trust_settings_are_rejected),
    };
    return cmocka_run_group_tests(tests, prepare, tidy);
}
