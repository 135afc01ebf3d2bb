/* Connecting to a server that accepts the connection, and then does not respond: the
 * attempt ends at its time limit, and when the store closes. */
#include "store/pg/pg_connect.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/list.h"
#include "tests/support/world/unit.h"

/* Accepts one connection, authenticates it, and swallows what it sends from then on. */
struct silent_server {
    uv_thread_t thread;
    int fd;
    char url[96];
    atomic_bool asked; /* a statement has arrived */
};

static void tell(int fd, const char *bytes, size_t len)
{
    assert_int_equal(write(fd, bytes, len), len);
}

#define TELL(fd, bytes) tell(fd, bytes, sizeof(bytes) - 1)

static void on_thread(void *arg)
{
    struct silent_server *server = arg;
    char bytes[4096];
    int fd = accept(server->fd, NULL, NULL);
    if (fd < 0 || read(fd, bytes, sizeof(bytes)) <= 0)
        return;
    TELL(fd, "R\0\0\0\x08\0\0\0\0"
             "S\0\0\0\x18server_version\0"
             "15.0\0"
             "S\0\0\0\x17in_hot_standby\0"
             "off\0"
             "S\0\0\0\x26"
             "default_transaction_read_only\0"
             "off\0"
             "Z\0\0\0\x05I");
    while (read(fd, bytes, sizeof(bytes)) > 0)
        atomic_store(&server->asked, true);
    close(fd);
}

static void start_server(struct silent_server *server)
{
    struct sockaddr_in address = { .sin_family = AF_INET };
    socklen_t len = sizeof(address);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    server->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(server->fd, (struct sockaddr *)&address, len), 0);
    assert_int_equal(listen(server->fd, 1), 0);
    assert_int_equal(getsockname(server->fd, (struct sockaddr *)&address, &len), 0);
    snprintf(server->url, sizeof(server->url),
             "postgresql://a@127.0.0.1:%d/a?sslmode=disable", ntohs(address.sin_port));
    assert_int_equal(uv_thread_create(&server->thread, on_thread, server), 0);
}

static void stop_server(struct silent_server *server)
{
    uv_thread_join(&server->thread);
    close(server->fd);
}

/* ---- a job that connects, as in pg_link.c ---- */

struct connecting {
    struct work work;
    struct silent_server server;
    struct pg_options options;
    struct failure why;
    PGconn *conn;
    bool stops; /* once the statement has arrived */
    bool is_done;
};

static void connect_work(struct work *work)
{
    struct connecting *connecting = container_of(work, struct connecting, work);
    struct pg_hello hello;
    connecting->conn = pg_connect(&connecting->options, work, &hello, &connecting->why);
}

static void on_done(struct work *work)
{
    container_of(work, struct connecting, work)->is_done = true;
}

static void connect_to_silence(struct connecting *connecting)
{
    uv_loop_t loop;
    start_server(&connecting->server);
    connecting->options.database = connecting->server.url;
    connecting->work.run = connect_work;
    connecting->work.done = on_done;
    assert_int_equal(uv_loop_init(&loop), 0);
    work_begin(&loop, &connecting->work, WORK_CONNECT);
    while (connecting->stops && !atomic_load(&connecting->server.asked))
        uv_sleep(1);
    if (connecting->stops)
        work_stop(&connecting->work);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_true(connecting->is_done);
    assert_null(connecting->conn);
    assert_int_equal(uv_loop_close(&loop), 0);
    stop_server(&connecting->server);
}

static void silent_server_is_given_up_at_the_limit(void **state)
{
    (void)state;
    struct connecting connecting = { .stops = false };
    connect_to_silence(&connecting);
    assert_true(atomic_load(&connecting.server.asked));
    assert_non_null(strstr(connecting.why.text, "did not respond for 5 s"));
}

static void connecting_ends_when_it_is_stopped(void **state)
{
    (void)state;
    struct connecting connecting = { .stops = true };
    connect_to_silence(&connecting);
    assert_non_null(strstr(connecting.why.text, "canceled"));
}

/* ---- reasons ---- */

static void reason_names_each_server_and_leaves_out_advice(void **state)
{
    (void)state;
    char reason[PG_REASON_MAX];
    pg_reason(reason,
              "server at \"a\" failed: Connection refused\n"
              "\tIs the server running on that host and accepting TCP/IP connections?\n"
              "server at \"b\" failed: session is read-only\n");
    assert_string_equal(reason, "server at \"a\" failed: Connection refused; "
                                "server at \"b\" failed: session is read-only");
    pg_reason(reason, "ERROR:  syntax error ");
    assert_string_equal(reason, "ERROR:  syntax error");
    pg_reason(reason, "");
    assert_string_equal(reason, "");
}

static void long_reason_is_cut_off(void **state)
{
    (void)state;
    char reason[PG_REASON_MAX], message[2 * PG_REASON_MAX];
    memset(message, 'a', sizeof(message));
    message[PG_REASON_MAX - 2] = '\n';
    message[sizeof(message) - 1] = '\0';
    pg_reason(reason, message);
    assert_int_equal(strlen(reason), PG_REASON_MAX - 1);
    assert_int_equal(reason[PG_REASON_MAX - 2], ';');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(silent_server_is_given_up_at_the_limit),
        cmocka_unit_test(connecting_ends_when_it_is_stopped),
        cmocka_unit_test(reason_names_each_server_and_leaves_out_advice),
        cmocka_unit_test(long_reason_is_cut_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
