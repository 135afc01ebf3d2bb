/* Sockets that are ready are served a few at a time. */
#include "tests/support/world/unit.h"

#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/list.h"
#include "base/loop.h"
#include "net/readiness.h"

enum { SOCKETS = 300, A_TURN = 64 };

struct end {
    struct readiness_watch watch;
    int other;
    int calls;
};

static struct {
    uv_loop_t uv;
    struct loop *loop;
    struct readiness readiness;
    struct end ends[SOCKETS];
    int calls;   /* in this turn */
    bool hurry;  /* every call uses up the turn's time */
    bool serves; /* only calls that may serve count; they leave the bytes */
} scene;

static void on_ready(struct readiness_watch *watch, uint32_t events)
{
    struct end *end = container_of(watch, struct end, watch);
    (void)events;
    if (scene.serves && !readiness_may_serve(&scene.readiness, watch))
        return;
    end->calls++;
    scene.calls++;
    while (scene.hurry && loop_time_left(scene.loop))
        ;
}

static void on_closed(uv_handle_t *handle)
{
    (void)handle;
}

static int turn(void)
{
    scene.calls = 0;
    uv_run(&scene.uv, UV_RUN_NOWAIT);
    return scene.calls;
}

static int open_scene(void **state)
{
    (void)state;
    memset(&scene, 0, sizeof(scene));
    uv_loop_init(&scene.uv);
    scene.loop = loop_create(&scene.uv);
    assert_true(readiness_init(&scene.readiness, scene.loop));
    for (int i = 0; i < SOCKETS; i++) {
        struct end *end = &scene.ends[i];
        int fds[2];
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
        end->watch = (struct readiness_watch){ .fd = fds[0], .fn = on_ready };
        end->other = fds[1];
        assert_true(readiness_watch(&scene.readiness, &end->watch, EPOLLIN));
    }
    return 0;
}

static int close_scene(void **state)
{
    (void)state;
    for (int i = 0; i < SOCKETS; i++) {
        close(scene.ends[i].watch.fd);
        close(scene.ends[i].other);
    }
    readiness_close(&scene.readiness, on_closed);
    loop_destroy(scene.loop);
    uv_run(&scene.uv, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&scene.uv), 0);
    return 0;
}

static void make_readable(int from, int to)
{
    for (int i = from; i < to; i++)
        assert_int_equal(write(scene.ends[i].other, "x", 1), 1);
}

static void all_ready_sockets_are_served_in_one_turn(void **state)
{
    (void)state;
    make_readable(0, SOCKETS);
    /* No call has read, so the last batch may contain some of them twice. */
    assert_true(turn() >= SOCKETS);
    for (int i = 0; i < SOCKETS; i++)
        assert_true(scene.ends[i].calls >= 1);
}

static void without_time_left_a_turn_serves_a_few_sockets_and_the_rest_next(void **state)
{
    (void)state;
    make_readable(0, SOCKETS);
    scene.hurry = true;
    int turns = 0;
    for (int served = 0; served < SOCKETS; turns++) {
        int calls = turn();
        assert_in_range(calls, 0, A_TURN);
        served += calls;
    }
    assert_true(turns >= SOCKETS / A_TURN);
    for (int i = 0; i < SOCKETS; i++)
        assert_in_range(scene.ends[i].calls, 1, 2); /* the last turn may start again */
}

/* Each has more bytes than a turn reads, like a client that sends a large body. */
static void sockets_that_stay_ready_take_turns(void **state)
{
    (void)state;
    make_readable(0, 100); /* more than the kernel reports at once */
    scene.hurry = scene.serves = true;
    for (int read = 0; read < 300;)
        read += turn();
    for (int i = 0; i < 100; i++)
        assert_in_range(scene.ends[i].calls, 2, 4);
}

static void socket_that_is_not_ready_is_not_called(void **state)
{
    (void)state;
    make_readable(7, 8);
    assert_true(turn() >= 1);
    for (int i = 0; i < SOCKETS; i++)
        assert_int_equal(scene.ends[i].calls > 0, i == 7);
}

static void socket_without_interest_is_not_called_at_its_end(void **state)
{
    struct readiness_watch *watch = &scene.ends[3].watch;
    (void)state;
    assert_true(readiness_watch(&scene.readiness, watch, 0));
    shutdown(scene.ends[3].other, SHUT_RDWR);
    assert_int_equal(turn(), 0);
    assert_true(readiness_watch(&scene.readiness, watch, EPOLLRDHUP));
    assert_true(turn() > 0);
}

static void socket_that_cannot_be_watched_is_rejected(void **state)
{
    struct readiness_watch none = { .fd = -1, .fn = on_ready };
    (void)state;
    assert_false(readiness_watch(&scene.readiness, &none, EPOLLIN));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_scene, close_scene)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(all_ready_sockets_are_served_in_one_turn),
        TEST(without_time_left_a_turn_serves_a_few_sockets_and_the_rest_next),
        TEST(sockets_that_stay_ready_take_turns),
        TEST(socket_that_is_not_ready_is_not_called),
        TEST(socket_without_interest_is_not_called_at_its_end),
        TEST(socket_that_cannot_be_watched_is_rejected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
