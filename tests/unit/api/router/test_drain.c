/* A stop answers held calls over several turns. */
#include <time.h>
#include <uv.h>

#include "api/realtime/long_polls.h"
#include "api/realtime/poll.h"
#include "api/router/services.h"
#include "base/mem.h"
#include "tests/support/world/api_world.h"
#include "tests/support/world/unit.h"

enum { HELD = 200, A_TURN = 64, BURNT_NS = 100000, POLLS = 60, KEPT_VIEWS_A_TURN = 20 };

static unsigned answered;

static int64_t cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* An answer takes a tenth of a millisecond of this thread: a turn has time for a few. */
static void on_drain(struct api_call *call)
{
    assert_true(list_empty(&call->held));
    answered++;
    for (int64_t until = cpu_ns() + BURNT_NS; cpu_ns() < until;)
        ;
}

static void held_calls_are_answered_over_several_turns(void **state)
{
    static struct api_world world;
    struct api_call *calls = mem_new_array(struct api_call, HELD);
    (void)state;
    api_world_open(&world);
    struct loop *loop = engine_loop(world.engine);
    for (int i = 0; i < HELD; i++) {
        calls[i].api = world.api;
        list_init(&calls[i].held);
        api_hold(&calls[i], on_drain);
    }
    api_drain(world.api);
    assert_in_range(answered, 1, A_TURN);
    while (answered < HELD) {
        unsigned before = answered;
        uv_run(loop_uv(loop), UV_RUN_NOWAIT);
        assert_in_range(answered - before, 0, A_TURN);
    }
    api_world_close(&world);
    free(calls);
}

/* An immediate stop does not wait for further turns. */
static void stop_during_a_drain_answers_all_calls(void **state)
{
    static struct api_world world;
    struct api_call *calls = mem_new_array(struct api_call, HELD);
    (void)state;
    answered = 0;
    api_world_open(&world);
    for (int i = 0; i < HELD; i++) {
        calls[i].api = world.api;
        list_init(&calls[i].held);
        api_hold(&calls[i], on_drain);
    }
    api_drain(world.api);
    assert_true(answered < HELD);
    api_stop(world.api);
    assert_int_equal(answered, HELD);
    api_world_close(&world);
    free(calls);
}

static size_t count_kept_views(const struct api_world *world)
{
    size_t count = 0;
    list_each (link, &api_long_polls(world->api)->kept_views)
        count++;
    return count;
}

static void state_of_long_polls_is_freed_over_several_turns(void **state)
{
    static struct api_world world;
    (void)state;
    api_world_open(&world);
    for (int i = 0; i < POLLS; i++) {
        char target[80];
        snprintf(target, sizeof(target), "/realtime/v1/runs?tags=tag%d&offset=-1", i);
        api_world_ask(&world, API_KEY_DEV, "GET", slice_of(target), (struct slice){ 0 },
                      (struct slice){ 0 }, 0);
        assert_int_equal(world.status, 200);
    }
    assert_int_equal(count_kept_views(&world), POLLS);
    struct loop *loop = engine_loop(world.engine);
    for (bool all = false; !all;) {
        struct timeslice timeslice = loop_timeslice(loop);
        size_t before = count_kept_views(&world);
        while (loop_time_left(loop))
            ; /* use up the turn */
        all = long_polls_stop(api_long_polls(world.api), &timeslice);
        assert_in_range(before - count_kept_views(&world), 1, KEPT_VIEWS_A_TURN);
        uv_run(loop_uv(loop), UV_RUN_NOWAIT);
    }
    assert_int_equal(count_kept_views(&world), 0);
    api_world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(held_calls_are_answered_over_several_turns),
        cmocka_unit_test(state_of_long_polls_is_freed_over_several_turns),
        cmocka_unit_test(stop_during_a_drain_answers_all_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
