/* Which clients may connect, how slow they may be, and how the others are rejected. */
#include "tests/support/world/unit.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/metrics.h"
#include "net/http/server_state.h"
#include "tests/support/world/net_world.h"

struct scene {
    struct net_world world;
    struct exchange *waiting;
    unsigned gone;
    bool by_admin; /* the last request came over the admin socket */
};

static void on_head(void *owner, struct exchange *x)
{
    (void)owner;
    x->body_limit = slice_is(x->path, "/small") ? 10 : 1 << 20;
}

static void on_request(void *owner, struct exchange *x)
{
    struct scene *scene = owner;
    scene->by_admin = x->admin;
    if (slice_is(x->path, "/wait"))
        scene->waiting = x;
    else
        http_reply(x, 200, (struct slice){ 0 }, SLICE("welcome"));
}

static void on_gone(void *owner, struct exchange *x)
{
    struct scene *scene = owner;
    scene->gone++;
    if (x != scene->waiting)
        http_reply(x, 500, (struct slice){ 0 }, SLICE("too late"));
}

static struct server_options with(struct scene *scene, struct server_options options)
{
    options.handler =
        (struct http_handler){ on_head, NULL, on_request, on_gone, NULL, NULL };
    options.owner = scene;
    return options;
}

static void open_scene(struct scene *scene, struct server_options options)
{
    *scene = (struct scene){ 0 };
    net_world_open(&scene->world, with(scene, options));
}

#define GET "GET / HTTP/1.1\r\nHost: a\r\n\r\n"

static void expect_welcome(struct scene *scene, struct peer *peer)
{
    peer_send(&scene->world, peer, slice_of(GET));
    peer_await(&scene->world, peer, "welcome");
}

static void invalid_addresses_are_explained(void **state)
{
    static const struct {
        const char *host;
        int port;
    } bad[] = {
        { "localhost", 0 },     { "", 0 },           { "256.1.1.1", 0 },
        { "127.0.0.1", 65536 }, { "127.0.0.1", -1 }, { "203.0.113.1", 0 },
        { "1:2:3", 0 },
    };
    struct scene scene;
    struct server *server = NULL;
    (void)state;
    open_scene(&scene, (struct server_options){ 0 });
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct failure why = { 0 };
        struct listen_options address = { .host = bad[i].host, .port = bad[i].port };
        struct server_options options = { .listeners = &address, .listener_count = 1 };
        assert_int_equal(server_create(scene.world.loop, &options, &server, &why),
                         ERR_INVALID);
        assert_non_null(strstr(why.text, bad[i].host));
        assert_null(server);
    }
    net_world_close(&scene.world);
}

static void a_port_in_use_is_explained(void **state)
{
    struct scene scene;
    struct server *second = NULL;
    struct failure why = { 0 };
    (void)state;
    open_scene(&scene, (struct server_options){ 0 });
    struct listen_options taken = { .host = "127.0.0.1",
                                    .port = server_port(scene.world.server, 0) };
    struct server_options same =
        with(&scene, (struct server_options){ .listeners = &taken, .listener_count = 1 });
    assert_int_equal(server_create(scene.world.loop, &same, &second, &why), ERR_INVALID);
    assert_non_null(strstr(why.text, "in use"));
    net_world_close(&scene.world);
}

/* A restart needs this: an address that was just given up can be used again. */
static void the_same_port_can_be_listened_on_again(void **state)
{
    struct scene scene;
    struct peer peer;
    (void)state;
    open_scene(&scene, (struct server_options){ 0 });
    int port = server_port(scene.world.server, 0);
    peer_open(&scene.world, &peer);
    expect_welcome(&scene, &peer);
    net_world_close(&scene.world);
    peer_await_end(&scene.world, &peer);
    peer_close(&peer);
    struct listen_options again = { .host = "127.0.0.1", .port = port };
    open_scene(&scene, (struct server_options){ .listeners = &again, .listener_count = 1 });
    assert_int_equal(server_port(scene.world.server, 0), port);
    net_world_close(&scene.world);
}

/* Returns a path that only this test process uses. */
static struct listen_options at_path(char path[64])
{
    snprintf(path, 64, "/tmp/test_server.%d.sock", (int)getpid());
    return (struct listen_options){ .path = path };
}

static int connect_to(const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (!connect(fd, (struct sockaddr *)&address, sizeof(address)))
        return fd;
    close(fd);
    return -1;
}

/* Leaves the socket file that a killed process leaves. */
static void leave_socket(const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    close(fd);
}

static void unix_socket_has_its_mode_and_is_removed_at_the_end(void **state)
{
    static const mode_t modes[] = { 0, 0660 };
    char path[64];
    struct stat status;
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct scene scene;
        struct listen_options address = at_path(path);
        address.mode = modes[i];
        if (i)
            leave_socket(path);
        open_scene(&scene,
                   (struct server_options){ .listeners = &address, .listener_count = 1 });
        assert_int_equal(stat(path, &status), 0);
        assert_int_equal(status.st_mode & 0777, i ? 0660 : 0600);
        struct peer peer = { .fd = connect_to(path) };
        expect_welcome(&scene, &peer);
        peer_close(&peer);
        net_world_close(&scene.world);
        assert_int_equal(stat(path, &status), -1);
    }
}

static void foreign_file_at_the_socket_path_is_not_removed(void **state)
{
    char path[64];
    struct scene scene;
    struct stat status;
    struct server *second = NULL;
    struct listen_options address = at_path(path);
    struct server_options same =
        with(&scene, (struct server_options){ .listeners = &address, .listener_count = 1 });
    (void)state;
    open_scene(&scene, same);
    struct failure why = { 0 };
    assert_int_equal(server_create(scene.world.loop, &same, &second, &why), ERR_INVALID);
    assert_non_null(strstr(why.text, "in use")); /* this process itself listens there */
    net_world_close(&scene.world);

    open_scene(&scene, (struct server_options){ 0 });
    close(open(path, O_CREAT | O_WRONLY, 0644));
    assert_int_equal(server_create(scene.world.loop, &same, &second, &why), ERR_INVALID);
    assert_non_null(strstr(why.text, path));
    assert_int_equal(stat(path, &status), 0);
    unlink(path);
    address.path = "/no/such/dir/x.sock";
    assert_int_equal(server_create(scene.world.loop, &same, &second, &why), ERR_INVALID);
    assert_non_null(strstr(why.text, "/no/such/dir"));
    assert_null(second);
    net_world_close(&scene.world);
}

/* Another process has created a file at the path meanwhile: it is not removed. */
static void socket_replaced_by_another_process_is_not_removed(void **state)
{
    char path[64];
    struct scene scene;
    struct stat status;
    struct listen_options address = at_path(path);
    (void)state;
    open_scene(&scene,
               (struct server_options){ .listeners = &address, .listener_count = 1 });
    char moved[80];
    snprintf(moved, sizeof(moved), "%s.old", path);
    assert_int_equal(rename(path, moved), 0);
    leave_socket(path);
    net_world_close(&scene.world);
    assert_int_equal(stat(path, &status), 0);
    unlink(path);
    unlink(moved);
}

static void listeners_share_a_limit_but_admin_connections_do_not_count(void **state)
{
    enum { MOST = 2 };
    char path[64];
    struct scene scene;
    struct peer peers[MOST], third;
    struct listen_options addresses[] = { { .host = "127.0.0.1" },
                                          { .host = "::1" },
                                          at_path(path) };
    addresses[2].admin = true;
    (void)state;
    open_scene(&scene, (struct server_options){ .listeners = addresses,
                                                .listener_count = 3,
                                                .connections_max = MOST });
    struct sockaddr_in6 six = { .sin6_family = AF_INET6,
                                .sin6_addr = IN6ADDR_LOOPBACK_INIT };
    six.sin6_port = htons((uint16_t)server_port(scene.world.server, 1));
    peer_open(&scene.world, &peers[0]);
    peers[1] = (struct peer){ .fd = socket(AF_INET6, SOCK_STREAM, 0) };
    assert_int_equal(connect(peers[1].fd, (struct sockaddr *)&six, sizeof(six)), 0);
    net_world_turn(&scene.world);
    peer_open(&scene.world, &third);
    peer_await(&scene.world, &third, "HTTP/1.1 503 ");
    for (int i = 0; i < MOST; i++)
        expect_welcome(&scene, &peers[i]);
    assert_false(scene.by_admin);
    struct peer admin = { .fd = connect_to(path) };
    expect_welcome(&scene, &admin);
    assert_true(scene.by_admin);
    for (int i = 0; i < MOST; i++)
        peer_close(&peers[i]);
    peer_close(&third);
    peer_close(&admin);
    net_world_close(&scene.world);
}

/* An operator who lowers the limit under load wants to see the effect. */
static void lowered_connection_limit_still_admits_admins(void **state)
{
    enum { OPEN = 80 };
    char path[64];
    static struct peer peers[OPEN];
    struct scene scene;
    struct peer runs_last;
    struct listen_options addresses[] = { { .host = "127.0.0.1" }, at_path(path) };
    addresses[1].admin = true;
    (void)state;
    open_scene(&scene, (struct server_options){ .listeners = addresses,
                                                .listener_count = 2,
                                                .connections_max = 2 * OPEN });
    for (int i = 0; i < OPEN; i++)
        peer_open(&scene.world, &peers[i]);
    server_limit_connections(scene.world.server, 2, 0);
    peer_open(&scene.world, &runs_last);
    peer_await(&scene.world, &runs_last, "HTTP/1.1 503 ");
    struct peer admin = { .fd = connect_to(path) };
    expect_welcome(&scene, &admin);
    for (int i = 0; i < OPEN; i++)
        peer_close(&peers[i]);
    peer_close(&runs_last);
    peer_close(&admin);
    net_world_close(&scene.world);
}

static void connection_above_the_limit_gets_503(void **state)
{
    struct scene scene;
    struct peer peers[2], third;
    int64_t before = metrics[M_HTTP_REFUSED];
    (void)state;
    open_scene(&scene, (struct server_options){ .connections_max = 2 });
    peer_open(&scene.world, &peers[0]);
    peer_open(&scene.world, &peers[1]);
    peer_open(&scene.world, &third);
    peer_await_end(&scene.world, &third);
    assert_true(peer_has(&third, "HTTP/1.1 503 "));
    assert_true(peer_has(&third, "retry-after: "));
    assert_true(peer_has(&third, "{\"error\":"));
    assert_int_equal(metrics[M_HTTP_REFUSED] - before, 1);
    peer_close(&third);
    expect_welcome(&scene, &peers[1]);
    peer_close(&peers[0]);
    net_world_turn(&scene.world);
    peer_open(&scene.world, &third);
    expect_welcome(&scene, &third);
    peer_close(&third);
    peer_close(&peers[1]);
    net_world_close(&scene.world);
}

/* No descriptor is left for accepting: clients get a 503, and the loop does not spin. */
static void connection_without_descriptors_gets_503(void **state)
{
    enum { CALLERS = 20 };
    struct scene scene;
    struct peer callers[CALLERS];
    struct rlimit limit, low;
    (void)state;
    open_scene(&scene, (struct server_options){ 0 });
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port =
                                       htons((uint16_t)server_port(scene.world.server, 0)),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    for (int i = 0; i < CALLERS; i++)
        callers[i] = (struct peer){ .fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) };
    getrlimit(RLIMIT_NOFILE, &limit);
    low = limit;
    low.rlim_cur = (rlim_t)callers[CALLERS - 1].fd + 1;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    for (int i = 0; i < CALLERS; i++)
        assert_int_equal(
            connect(callers[i].fd, (struct sockaddr *)&address, sizeof(address)), 0);
    for (int i = 0; i < CALLERS; i++) {
        peer_await_end(&scene.world, &callers[i]);
        assert_true(peer_has(&callers[i], "HTTP/1.1 503 "));
        if (i < CALLERS - 1)
            buf_finish(&callers[i].got);
    }
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    buf_finish(&callers[CALLERS - 1].got);
    for (int i = 0; i < CALLERS; i++)
        peer_close(&callers[i]);
    peer_open(&scene.world, &callers[0]);
    expect_welcome(&scene, &callers[0]);
    peer_close(&callers[0]);
    net_world_close(&scene.world);
}

static void slow_head_times_out(void **state)
{
    static const char *const heads[] = { "G", "GET / HTTP/1.1\r\nHost: a\r\n", "\r" };
    (void)state;
    for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
        struct scene scene;
        struct peer peer;
        open_scene(&scene, (struct server_options){ .head_timeout_ms = 30 });
        peer_open(&scene.world, &peer);
        peer_send(&scene.world, &peer, slice_of(heads[i]));
        peer_await_end(&scene.world, &peer);
        assert_true(peer_has(&peer, "HTTP/1.1 408 "));
        assert_true(peer_has(&peer, "connection: close"));
        assert_int_equal(scene.gone, 0);
        peer_close(&peer);
        net_world_close(&scene.world);
    }
}

/* A single byte now and then does not extend the time limit. */
static void head_sent_byte_by_byte_times_out(void **state)
{
    struct scene scene;
    struct peer peer;
    (void)state;
    open_scene(&scene, (struct server_options){ .head_timeout_ms = 50 });
    peer_open(&scene.world, &peer);
    peer_send(&scene.world, &peer, SLICE("GET / HTTP/1.1\r\nX: "));
    while (!peer_has(&peer, "408") && !peer.ended) {
        peer_try_send(&peer, SLICE("a"));
        net_world_turn(&scene.world);
    }
    peer_await_end(&scene.world, &peer);
    assert_true(peer_has(&peer, "HTTP/1.1 408 "));
    peer_close(&peer);
    net_world_close(&scene.world);
}

static void slow_body_times_out(void **state)
{
    struct scene scene;
    struct peer peer;
    (void)state;
    open_scene(&scene, (struct server_options){ .body_timeout_ms = 30 });
    peer_open(&scene.world, &peer);
    peer_send(&scene.world, &peer,
              SLICE("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nabc"));
    peer_await_end(&scene.world, &peer);
    assert_true(peer_has(&peer, "HTTP/1.1 408 "));
    assert_int_equal(scene.gone, 1);
    assert_int_equal(scene.world.server->open_exchanges, 0);
    peer_close(&peer);
    net_world_close(&scene.world);
}

/* It takes longer than the timeout, but is always fast enough. */
static void a_steady_body_is_accepted(void **state)
{
    enum { PIECES = 60, STEP_MS = 25 }; /* in total longer than the timeout */
    struct scene scene;
    struct peer peer;
    char piece[100];
    (void)state;
    memset(piece, 'a', sizeof(piece));
    open_scene(&scene, (struct server_options){ .body_timeout_ms = 1200 });
    peer_open(&scene.world, &peer);
    peer_send(&scene.world, &peer,
              SLICE("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 6000\r\n\r\n"));
    for (int i = 0; i < PIECES; i++) {
        uint64_t next = uv_hrtime() + STEP_MS * 1000000u;
        peer_send(&scene.world, &peer, (struct slice){ piece, sizeof(piece) });
        while (uv_hrtime() < next)
            net_world_turn(&scene.world);
    }
    peer_await(&scene.world, &peer, "welcome");
    peer_close(&peer);
    net_world_close(&scene.world);
}

static void idle_connection_is_closed_without_an_answer(void **state)
{
    struct scene scene;
    struct peer fresh, used;
    (void)state;
    open_scene(&scene, (struct server_options){ .idle_timeout_ms = 300 });
    peer_open(&scene.world, &used);
    expect_welcome(&scene, &used);
    peer_open(&scene.world, &fresh);
    buf_clear(&used.got);
    peer_await_end(&scene.world, &used);
    peer_await_end(&scene.world, &fresh);
    assert_int_equal(used.got.len + fresh.got.len, 0);
    assert_false(used.reset || fresh.reset);
    peer_close(&used);
    peer_close(&fresh);
    net_world_close(&scene.world);
}

static void a_handler_may_take_its_time(void **state)
{
    struct scene scene;
    struct peer peer, slow;
    (void)state;
    open_scene(&scene, (struct server_options){ .head_timeout_ms = 10,
                                                .body_timeout_ms = 10,
                                                .idle_timeout_ms = 30,
                                                .write_timeout_ms = 10 });
    peer_open(&scene.world, &peer);
    peer_send(&scene.world, &peer, SLICE("GET /wait HTTP/1.1\r\nHost: a\r\n\r\n"));
    for (int i = 0; i < 5; i++) { /* each time longer than any of the timeouts */
        peer_open(&scene.world, &slow);
        peer_await_end(&scene.world, &slow);
        peer_close(&slow);
    }
    assert_false(peer_has(&peer, "H") || peer.ended);
    http_reply(scene.waiting, 200, (struct slice){ 0 }, SLICE("done"));
    peer_await(&scene.world, &peer, "done");
    peer_close(&peer);
    net_world_close(&scene.world);
}

static bool is_empty(void *owner)
{
    struct scene *scene = owner;
    return scene->world.server->connection_count == 0;
}

static void unread_reply_times_out(void **state)
{
    struct scene scene;
    struct peer peer;
    struct bytes *body = bytes_create_empty(8 << 20);
    (void)state;
    memset(body->data, '-', body->len);
    open_scene(&scene, (struct server_options){ .write_timeout_ms = 40,
                                                .least_bytes_per_s = 1 << 30 });
    peer_open(&scene.world, &peer);
    peer_send(&scene.world, &peer, SLICE("GET /wait HTTP/1.1\r\nHost: a\r\n\r\n"));
    net_world_turn(&scene.world);
    http_reply_shared(scene.waiting, 200, (struct slice){ 0 }, body);
    assert_int_equal(body->refs, 2);
    net_world_until(&scene.world, is_empty, &scene);
    assert_int_equal(body->refs, 1);
    bytes_unref(body);
    peer_close(&peer);
    net_world_close(&scene.world);
}

/* Neither bytes that the kernel accepts nor bytes that the peer sends prove it reads. */
static void peer_that_sends_without_reading_times_out(void **state)
{
    struct scene scene;
    struct peer peer;
    struct bytes *body = bytes_create_empty(8 << 20);
    (void)state;
    memset(body->data, '-', body->len);
    open_scene(&scene, (struct server_options){ .write_timeout_ms = 200,
                                                .least_bytes_per_s = 1 << 30 });
    peer_open(&scene.world, &peer);
    peer_send(&scene.world, &peer, SLICE("GET /wait HTTP/1.1\r\nHost: a\r\n\r\n"));
    net_world_turn(&scene.world);
    http_reply_shared(scene.waiting, 200, (struct slice){ 0 }, body);
    for (int i = 0; i < 2000 && !is_empty(&scene); i++) {
        send(peer.fd, "\n", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
        usleep(2000);
        net_world_turn(&scene.world);
    }
    assert_true(is_empty(&scene));
    assert_int_equal(body->refs, 1);
    bytes_unref(body);
    peer_close(&peer);
    net_world_close(&scene.world);
}

/* The client can read the reason although it is still sending. */
static void rejected_upload_can_read_its_answer(void **state)
{
    struct scene scene;
    struct peer peer;
    struct buf body = { 0 };
    (void)state;
    for (int i = 0; i < 100000; i++)
        buf_add_text(&body, "0123456789");
    open_scene(&scene, (struct server_options){ 0 });
    peer_open(&scene.world, &peer);
    peer_send(&scene.world, &peer,
              SLICE("POST /small HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n"));
    net_world_turn(&scene.world);
    peer_send(&scene.world, &peer, buf_slice(&body));
    peer_await_end(&scene.world, &peer);
    assert_true(peer_has(&peer, "HTTP/1.1 413 "));
    assert_false(peer.reset);
    assert_int_equal(scene.gone, 1);
    buf_finish(&body);
    peer_close(&peer);
    net_world_until(&scene.world, is_empty, &scene);
    net_world_close(&scene.world);
}

/* A peer that never closes after a rejection is cut. */
static void rejected_peer_that_never_closes_is_cut(void **state)
{
    struct scene scene;
    struct peer peer;
    (void)state;
    open_scene(&scene, (struct server_options){ .closing_timeout_ms = 30 });
    peer_open(&scene.world, &peer);
    peer_send(&scene.world, &peer, SLICE("BAD"));
    peer_await_end(&scene.world, &peer);
    assert_true(peer_has(&peer, "HTTP/1.1 400 "));
    net_world_until(&scene.world, is_empty, &scene);
    peer_close(&peer);
    net_world_close(&scene.world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(invalid_addresses_are_explained),
        cmocka_unit_test(a_port_in_use_is_explained),
        cmocka_unit_test(the_same_port_can_be_listened_on_again),
        cmocka_unit_test(unix_socket_has_its_mode_and_is_removed_at_the_end),
        cmocka_unit_test(foreign_file_at_the_socket_path_is_not_removed),
        cmocka_unit_test(socket_replaced_by_another_process_is_not_removed),
        cmocka_unit_test(listeners_share_a_limit_but_admin_connections_do_not_count),
        cmocka_unit_test(lowered_connection_limit_still_admits_admins),
        cmocka_unit_test(connection_above_the_limit_gets_503),
        cmocka_unit_test(connection_without_descriptors_gets_503),
        cmocka_unit_test(slow_head_times_out),
        cmocka_unit_test(head_sent_byte_by_byte_times_out),
        cmocka_unit_test(slow_body_times_out),
        cmocka_unit_test(a_steady_body_is_accepted),
        cmocka_unit_test(idle_connection_is_closed_without_an_answer),
        cmocka_unit_test(a_handler_may_take_its_time),
        cmocka_unit_test(unread_reply_times_out),
        cmocka_unit_test(peer_that_sends_without_reading_times_out),
        cmocka_unit_test(rejected_upload_can_read_its_answer),
        cmocka_unit_test(rejected_peer_that_never_closes_is_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
