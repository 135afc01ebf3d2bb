/* Addresses to listen on, as flags, variables and files give them. */
#include "tests/support/world/config_input.h"
#include "tests/support/world/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "server/config/config_listen.h"

static void an_address_is_split_into_host_and_port(void **state)
{
    (void)state;
    static const struct {
        const char *listen, *host;
        int port;
        bool loopback;
    } cases[] = {
        { "127.0.0.1:3030", "127.0.0.1", 3030, true },
        { "127.9.9.9:1", "127.9.9.9", 1, true },
        { "localhost:80", "127.0.0.1", 80, true },
        { "3030", "127.0.0.1", 3030, true },
        { "0", "127.0.0.1", 0, true },
        { "[::1]:65535", "::1", 65535, true },
        { "[::ffff:127.0.0.1]:80", "::ffff:127.0.0.1", 80, true },
        { ":3030", "0.0.0.0", 3030, false },
        { "0.0.0.0:3030", "0.0.0.0", 3030, false },
        { "[::]:3030", "::", 3030, false },
        { "192.0.2.1:3030", "192.0.2.1", 3030, false },
        { "[2001:db8::1]:3030", "2001:db8::1", 3030, false },
        { "[::ffff:192.0.2.1]:80", "::ffff:192.0.2.1", 80, false },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct config_listener listeners[CONFIG_LISTENERS_MAX];
        size_t count;
        struct failure why;
        struct config config = config_input_right(
            &(struct config_input){ .arguments = { "--listen", cases[i].listen } });
        assert_int_equal(config_listeners(&config, listeners, &count, &why), OK);
        assert_int_equal(count, 1);
        assert_string_equal(listeners[0].host, cases[i].host);
        assert_int_equal(listeners[0].port, cases[i].port);
        assert_int_equal(config_listener_is_local(&listeners[0]), cases[i].loopback);
        config_finish(&config);
    }
}

static void addresses_are_a_list_in_every_source(void **state)
{
    static const char wanted[] = "127.0.0.1:1 unix:/run/a.sock [::1]:3";
    static const struct config_input inputs[] = {
        { .arguments = { "--listen", "127.0.0.1:1", "--listen=unix:/run/a.sock", "--listen",
                         "[::1]:3" },
          .file = "listen = 9\n" },
        { .file = "listen = 127.0.0.1:1\nlog-level = warn\nlisten = unix:/run/a.sock "
                  "[::1]:3\n" },
        { .environment = { "RUNCAST_LISTEN= 127.0.0.1:1\tunix:/run/a.sock  [::1]:3 " },
          .file = "listen = 9\nlisten = 10\n" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof(inputs) / sizeof(inputs[0]); i++) {
        struct config_listener listeners[CONFIG_LISTENERS_MAX];
        size_t count;
        struct failure why;
        struct config config = config_input_right(&inputs[i]);
        assert_string_equal(config.listen, wanted);
        assert_int_equal(config_listeners(&config, listeners, &count, &why), OK);
        assert_int_equal(count, 3);
        assert_int_equal(listeners[0].port, 1);
        assert_string_equal(listeners[1].path, "/run/a.sock");
        assert_true(config_listener_is_local(&listeners[1]));
        assert_string_equal(listeners[2].host, "::1");
        config_finish(&config);
    }
}

static void an_address_may_be_behind_a_proxy(void **state)
{
    struct config_listener listeners[CONFIG_LISTENERS_MAX];
    struct failure why;
    size_t count;
    (void)state;
    struct config config = config_input_right(&(struct config_input){
        .arguments = { "--listen", "127.0.0.1:1,proxy", "--listen=unix:/a,proxy [::1]:2",
                       "--trusted-proxies", "10.0.0.0/8, unix" } });
    assert_int_equal(config_listeners(&config, listeners, &count, &why), OK);
    assert_int_equal(count, 3);
    assert_true(listeners[0].proxied && listeners[1].proxied && !listeners[2].proxied);
    assert_int_equal(listeners[0].port, 1);
    assert_string_equal(listeners[1].path, "/a");
    config_finish(&config);

    why = config_input_wrong(
        &(struct config_input){ .arguments = { "--admin-listen", "127.0.0.1:1,proxy" } });
    assert_non_null(strstr(why.text, "admin-listen cannot be"));
    why = config_input_wrong(
        &(struct config_input){ .arguments = { "--listen", "127.0.0.1:1,udp" } });
    assert_non_null(strstr(why.text, "listen cannot be"));
    why = config_input_wrong(
        &(struct config_input){ .arguments = { "--trusted-proxies", "10.0.0.0/33" } });
    assert_non_null(strstr(why.text, "trusted-proxies cannot be \"10.0.0.0/33\""));
}

static void address_may_use_tls(void **state)
{
    struct config_listener listeners[CONFIG_LISTENERS_MAX];
    struct failure why;
    size_t count;
    (void)state;
    struct config config = config_input_right(&(struct config_input){
        .arguments = { "--listen", "127.0.0.1:1,tls 2,proxy,tls systemd:http,tls,proxy 3",
                       "--tls-cert", "a.pem", "--tls-cert=b.pem", "--tls-key",
                       "a.key b.key" } });
    assert_int_equal(config_listeners(&config, listeners, &count, &why), OK);
    assert_int_equal(count, 4);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(listeners[i].secure, i < 3);
        assert_int_equal(listeners[i].proxied, i == 1 || i == 2);
    }
    assert_string_equal(listeners[2].handed, "http");
    assert_true(config_listener_address(&listeners[0], false).secure);
    assert_string_equal(config.tls_cert, "a.pem b.pem");
    config_finish(&config);

    static const struct {
        const char *arguments[6], *reason;
    } wrong[] = {
        { { "--listen", "1,tls" }, "needs a certificate" },
        { { "--listen", "1,tls", "--tls-cert", "a" }, "1 files but tls-key 0" },
        { { "--listen", "1,tls", "--tls-key", "a" }, "0 files but tls-key 1" },
        { { "--tls-cert", "a", "--tls-key", "b" },
          "no address of listen or peer-listen speaks" },
        { { "--listen", "1,tls,tls" }, "listen cannot be" },
        { { "--admin-listen", "127.0.0.1:1,tls" }, "admin-listen cannot be" },
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct config_input input = { 0 };
        memcpy(input.arguments, wrong[i].arguments, sizeof(wrong[i].arguments));
        why = config_input_wrong(&input);
        if (!strstr(why.text, wrong[i].reason))
            fail_msg("'%s' and not '%s'", why.text, wrong[i].reason);
    }
}

#define KEY                                                                                \
    "RUNCAST_ENCRYPTION_KEY="                                                              \
    "5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e"
#define PEERS "--database", "postgresql://localhost/runs", "--peer-listen"

static void peers_get_the_url_of_their_listener(void **state)
{
    (void)state;
    static const struct {
        const char *arguments[8], *host, *url;
        bool is_public;
    } cases[] = {
        { { "--listen", "1" }, "", "", false },
        { { PEERS, "10.0.0.2:3040" }, "10.0.0.2", "http://10.0.0.2:3040", false },
        { { PEERS, "[fd00::2]:3040" }, "fd00::2", "http://[fd00::2]:3040", false },
        { { PEERS, "3040" }, "127.0.0.1", "http://127.0.0.1:3040", false },
        { { PEERS, "192.0.2.1:3040" }, "192.0.2.1", "http://192.0.2.1:3040", true },
        { { PEERS, ":3040", "--peer-url", "https://a.internal" },
          "0.0.0.0",
          "https://a.internal",
          true },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct config_input input = { .environment = { KEY } };
        struct config_listener listener;
        struct failure why;
        char url[PEER_URL_MAX];
        memcpy(input.arguments, cases[i].arguments, sizeof(cases[i].arguments));
        struct config config = config_input_right(&input);
        assert_int_equal(config_peer_listener(&config, &listener, &why), OK);
        config_write_peer_url(&config, &listener, url);
        assert_string_equal(listener.host, cases[i].host);
        assert_string_equal(url, cases[i].url);
        assert_int_equal(config_listener_is_public(&listener), cases[i].is_public);
        config_finish(&config);
    }
}

static void address_that_no_peer_can_use_is_rejected(void **state)
{
    (void)state;
    static const struct {
        const char *arguments[8], *reason;
    } wrong[] = {
        { { "--peer-listen", "10.0.0.2:3040" }, "needs PostgreSQL" },
        { { PEERS, "unix:/run/peer.sock" }, "peer-listen cannot be" },
        { { PEERS, "systemd:peer" }, "peer-listen cannot be" },
        { { PEERS, "10.0.0.2:3040,proxy" }, "peer-listen cannot be" },
        { { PEERS, "10.0.0.2:0" }, "peer-listen cannot be" },
        { { PEERS, ":3040" }, "set peer-url" },
        { { PEERS, "[::]:3040" }, "set peer-url" },
        { { PEERS, "127.0.0.1:3030" }, "repeats the address" },
        { { PEERS, "10.0.0.2:3040,tls" }, "--peer-listen: an address with ,tls needs" },
        { { "--peer-url", "http://10.0.0.2:3040" }, "without peer-listen" },
        { { PEERS, "10.0.0.2:3040", "--peer-url", "10.0.0.2:3040" }, "--peer-url" },
        { { PEERS, "10.0.0.2:3040", "--peer-url", "http://a:b@c" }, "--peer-url" },
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct config_input input = { .environment = { KEY } };
        memcpy(input.arguments, wrong[i].arguments, sizeof(wrong[i].arguments));
        struct failure why = config_input_wrong(&input);
        if (!strstr(why.text, wrong[i].reason))
            fail_msg("'%s' and not '%s'", why.text, wrong[i].reason);
    }
}

static void metrics_are_in_the_data_directory_unless_an_address_is_given(void **state)
{
    struct config_listener admin;
    struct failure why;
    (void)state;
    struct config config =
        config_input_right(&(struct config_input){ .arguments = { "--data", "/d" } });
    assert_int_equal(config_admin_listener(&config, &admin, &why), OK);
    assert_string_equal(admin.path, "/d/metrics.sock");
    config_finish(&config);
    config = config_input_right(
        &(struct config_input){ .arguments = { "--admin-listen", "[::1]:9" } });
    assert_int_equal(config_admin_listener(&config, &admin, &why), OK);
    assert_string_equal(admin.host, "::1");
    assert_int_equal(admin.port, 9);
    config_finish(&config);
}

static void invalid_address_is_rejected(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "x",           "127.0.0.1",  "127.0.0.1:",    "127.0.0.1:65536", "127.0.0.1:-1",
        "1.2.3:80",    "::1:3030",   "[::1]",         "[::1:3030",       "[]:3030",
        "host:3030",   "127.1:80",   "[127.0.0.1",    "127.0.0.1:http",  "127.0.0.1:80:90",
        "256.0.0.1:1", "[::1%lo]:1", "127.0.0.1 :80", "[1]:80",          "unix:",
        "80 unix:",    "",
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct failure why = config_input_wrong(
            &(struct config_input){ .arguments = { "--listen", wrong[i] } });
        assert_non_null(strstr(why.text, "--listen: listen cannot be"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_address_is_split_into_host_and_port),
        cmocka_unit_test(addresses_are_a_list_in_every_source),
        cmocka_unit_test(an_address_may_be_behind_a_proxy),
        cmocka_unit_test(address_may_use_tls),
        cmocka_unit_test(peers_get_the_url_of_their_listener),
        cmocka_unit_test(address_that_no_peer_can_use_is_rejected),
        cmocka_unit_test(metrics_are_in_the_data_directory_unless_an_address_is_given),
        cmocka_unit_test(invalid_address_is_rejected),
    };
    return cmocka_run_group_tests(tests, config_input_setup, config_input_teardown);
}
