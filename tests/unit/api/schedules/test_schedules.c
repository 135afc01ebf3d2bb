/* Schedules fire each nominal time once, despite restarts, steps of the clock and lost
 * results of the store. */
#include "tests/support/world/unit.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "tests/support/world/calls.h"
#include "tests/support/world/schedule_calls.h"

/* 2026-03-01T00:00:00Z, unless a test sets another time. */
static const int64_t begin_ms = INT64_C(1772323200000);

static int create_world(void **state)
{
    *state = create_world_at(begin_ms, (struct engine_options){ 0 });
    return 0;
}

static int destroy_world(void **state)
{
    world_destroy(*state);
    free(forgetful);
    return 0;
}

/* ---- firing ---- */

static void a_schedule_fires_at_its_times_and_not_before(void **state)
{
    struct world *world = *state;
    struct asking daily = make(world, "5 * * * *", "UTC");
    pass(world, 5 * MINUTE - SECOND);
    assert_fired(world, daily.id, "");
    pass(world, SECOND);
    assert_fired(world, daily.id, "2026-03-01T00:05");
    pass(world, HOUR);
    assert_fired(world, daily.id, "2026-03-01T00:05 2026-03-01T01:05");
}

static const struct run *run_of(struct world *world, int64_t nominal)
{
    size_t at = 0;
    for (struct tracked *t; (t = table_next(&world->env->runs, &at));)
        if (run_rare(&t->run)->schedule && time_in(&t->run, "timestamp") == nominal)
            return &t->run;
    fail_msg("nothing fired at %lld", (long long)nominal);
    return NULL;
}

static void payload_contains_the_times_as_dates(void **state)
{
    struct world *world = *state;
    struct asking asking = make(world, "0 9 * * *", "Europe/Berlin");
    char expected[2048];
    pass(world, 33 * HOUR);

    const struct run *run = run_of(world, begin_ms + 32 * HOUR);
    snprintf(
        expected, sizeof(expected),
        "{\"json\":{\"type\":\"IMPERATIVE\",\"timestamp\":\"2026-03-02T08:00:00.000Z\","
        "\"lastTimestamp\":\"2026-03-01T08:00:00.000Z\",\"timezone\":\"Europe/Berlin\","
        "\"scheduleId\":\"%s\",\"upcoming\":[\"2026-03-03T08:00:00.000Z\"",
        asking.id);
    assert_memory_equal(run->payload->data, expected, strlen(expected));
    assert_non_null(strstr(run->payload->data, "\"2026-03-12T08:00:00.000Z\"]},"));
    assert_non_null(strstr(run->payload->data,
                           "\"meta\":{\"values\":{\"timestamp\":[\"Date\"],"
                           "\"lastTimestamp\":[\"Date\"],\"upcoming.0\":[\"Date\"],"));
    assert_string_equal(run_rare(run)->payload_type->data, "application/super+json");
    assert_string_equal(run->task->data, "hello");
    assert_null(strstr(run_of(world, begin_ms + 8 * HOUR)->payload->data, "lastTimestamp"));
}

static void many_schedules_of_one_minute_all_fire(void **state)
{
    struct world *world = *state;
    struct asking *asked = mem_new_array(struct asking, 1000);
    for (int i = 0; i < 1000; i++) {
        asked[i] = (struct asking){ .cron = "* * * * *", .zone = "UTC" };
        ask_in(world, WORLD_ENV, &asked[i]);
    }
    world_settle(world);
    for (int i = 0; i < 2; i++) {
        pass(world, MINUTE);
        for (int turn = 0; turn < 200; turn++) /* a few per turn */
            world_pass(world, 1);
    }
    assert_int_equal(fired_by(world, NULL).count, 2000);
    for (int i = 0; i < 1000; i++)
        assert_fired(world, asked[i].id, "2026-03-01T00:01 2026-03-01T00:02");
    free(asked);
}

static void disabled_schedule_neither_fires_nor_catches_up(void **state)
{
    struct world *world = *state;
    struct asking asking = make(world, "* * * * *", "UTC");
    pass(world, MINUTE);
    asking = (struct asking){ .deactivate = true, .command = { 0 } };
    struct schedule *schedule = schedules_next(world->schedules, world->env, NULL);
    snprintf(asking.id, sizeof(asking.id), "%s", schedule->id);
    assert_int_equal(ask(world, &asking), OK);
    pass(world, 5 * MINUTE);
    restart(world, MINUTE);
    pass(world, MINUTE);
    assert_fired(world, asking.id, "2026-03-01T00:01");
    asking.deactivate = false;
    asking.activate = true;
    assert_int_equal(ask(world, &asking), OK);
    pass(world, MINUTE);
    assert_fired(world, asking.id, "2026-03-01T00:01 2026-03-01T00:09");
}

static void drained_engine_fires_no_schedule(void **state)
{
    struct world *world = *state;
    struct asking asking = make(world, "* * * * *", "UTC");
    engine_drain(world->engine);
    pass(world, 3 * MINUTE);
    assert_fired(world, asking.id, "");
    restart(world, 0);
    pass(world, SECOND);
    assert_fired(world, asking.id, "2026-03-01T00:03");
}

static void schedules_made_in_one_millisecond_keep_their_order(void **state)
{
    struct world *world = *state;
    struct asking all[20] = { 0 };
    for (int i = 0; i < 20; i++) {
        all[i] = (struct asking){ .cron = "* * * * *", .zone = "UTC" };
        ask_in(world, WORLD_ENV, &all[i]);
    }
    for (int i = 0; i < 20; i++) {
        wait_for_answer(world, &all[i]);
        assert_int_equal(all[i].status, OK);
        assert_true(i == 0 || strcmp(all[i].id, all[i - 1].id) > 0);
    }
}

static void schedules_of_a_retired_environment_do_not_fire(void **state)
{
    struct world *world = *state;
    struct asking early = make(world, "* * * * *", "UTC");
    schedules_retire(world->schedules, world->env);
    struct asking late = make(world, "* * * * *", "UTC");
    pass(world, 3 * MINUTE);
    assert_fired(world, early.id, "");
    assert_fired(world, late.id, "");
}

/* ---- exactly once ---- */

/* Fires every minute, ten times; the commit `number` is lost, and the engine with it. */
static void lose_one(struct world *world, enum loss loss, int number, int64_t down)
{
    struct asking asking = make(world, "* * * * *", "UTC");
    fake_store_set_delay(world->fake, 20, 0);
    forgetful->loss = loss;
    forgetful->countdown = number;
    forgetful->lost = false;
    for (int64_t step = 0; step < 10 * 60; step++) {
        world_pass(world, SECOND);
        if (!forgetful->lost)
            continue;
        forgetful->lost = false;
        restart(world, down);
    }
    pass(world, 100);
    struct fired fired = fired_by(world, asking.id);
    size_t missed = (size_t)(down / MINUTE);
    if (fired.count < 10 || fired.count > 10 + missed)
        fail_msg("lost %d, commit %d, down %lld ms: fired %zu times", loss, number,
                 (long long)down, fired.count);
    for (size_t i = 1; i < fired.count; i++) {
        int64_t gap = fired.times[i] - fired.times[i - 1];
        assert_true(gap == MINUTE || (down >= MINUTE && gap <= down + MINUTE));
    }
}

static void each_time_fires_once_whatever_commit_is_lost_in_a_crash(void **state)
{
    static const int64_t downs[] = { 0, 30 * SECOND, 90 * SECOND, 10 * MINUTE };
    (void)state;
    for (int number = 1; number <= 6; number++)
        for (int loss = LOSE_WRITE; loss <= LOSE_ANSWER; loss++)
            for (size_t i = 0; i < sizeof(downs) / sizeof(downs[0]); i++) {
                void *world = create_world_at(begin_ms, (struct engine_options){ 0 });
                lose_one(world, (enum loss)loss, number, downs[i]);
                destroy_world(&world);
            }
}

static void each_time_fires_once_whenever_the_engine_restarts(void **state)
{
    struct world *world = *state;
    struct asking asking = make(world, "* * * * *", "UTC");
    fake_store_set_delay(world->fake, 7, 3);
    for (int i = 0; i < 120; i++) {
        pass(world, 950 + i % 13 * 100);
        restart(world, 0);
    }
    struct fired fired = fired_by(world, asking.id);
    assert_true(fired.count >= 3);
    for (size_t i = 0; i < fired.count; i++)
        assert_int_equal(fired.times[i], begin_ms + (int64_t)(i + 1) * MINUTE);
}

static void only_the_latest_missed_time_fires(void **state)
{
    struct world *world = *state;
    struct asking minutes = make(world, "* * * * *", "UTC");
    struct asking yearly = make(world, "30 4 1 6 *", "UTC");
    pass(world, MINUTE);
    restart(world, 400 * 24 * (int64_t)HOUR);
    pass(world, MINUTE);
    assert_fired(world, minutes.id, "2026-03-01T00:01 2027-04-05T00:01 2027-04-05T00:02");
    assert_fired(world, yearly.id, "2026-06-01T04:30");
    assert_int_equal(time_in(run_of(world, begin_ms + 400 * 24 * (int64_t)HOUR + MINUTE),
                             "lastTimestamp"),
                     begin_ms + MINUTE);
}

static void clock_set_back_fires_no_time_twice(void **state)
{
    struct world *world = *state;
    struct asking asking = make(world, "*/10 * * * *", "UTC");
    pass(world, 30 * MINUTE);
    loop_set_wall(world->loop, begin_ms + 5 * MINUTE);
    pass(world, 15 * MINUTE);
    restart(world, 0);
    pass(world, 25 * MINUTE);
    assert_fired(world, asking.id,
                 "2026-03-01T00:10 2026-03-01T00:20 2026-03-01T00:30 2026-03-01T00:40");
}

static void a_clock_set_forward_fires_the_latest_within_a_second(void **state)
{
    struct world *world = *state;
    struct asking asking = make(world, "0 * * * *", "UTC");
    pass(world, MINUTE);
    loop_set_wall(world->loop, begin_ms + 5 * HOUR + MINUTE);
    pass(world, SECOND);
    assert_fired(world, asking.id, "2026-03-01T05:00");
    pass(world, HOUR);
    assert_fired(world, asking.id, "2026-03-01T05:00 2026-03-01T06:00");
}

/* ---- daylight saving ---- */

static void times_around_a_clock_change_follow_the_rule(void **state)
{
    static const struct {
        int64_t from; /* Unix ms */
        const char *cron, *fired;
    } cases[] = {
        /* New York, 2026-03-08: 02:00 EST becomes 03:00 EDT, 07:00 UTC. */
        { INT64_C(1772947800000), "30 2 * * *", "2026-03-08T07:30" },
        { INT64_C(1772947800000), "30 * * * *",
          "2026-03-08T06:30 2026-03-08T07:30 2026-03-08T08:30 2026-03-08T09:30" },
        /* 2026-11-01: 02:00 EDT becomes 01:00 EST, 06:00 UTC. */
        { INT64_C(1793505600000), "30 1 * * *", "2026-11-01T05:30" },
        { INT64_C(1793505600000), "30 * * * *",
          "2026-11-01T04:30 2026-11-01T05:30 2026-11-01T06:30 2026-11-01T07:30" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        void *world = create_world_at(cases[i].from, (struct engine_options){ 0 });
        struct asking asking = make(world, cases[i].cron, "America/New_York");
        pass(world, 4 * HOUR);
        assert_fired(world, asking.id, cases[i].fired);
        destroy_world(&world);
    }
}

/* ---- commands ---- */

static void concurrent_creates_with_one_key_make_one_schedule(void **state)
{
    struct world *world = *state;
    struct asking first = { .cron = "* * * * *", .zone = "UTC", .key = "k" };
    struct asking second = { .cron = "*/2 * * * *", .zone = "UTC", .key = "k" };
    ask_in(world, WORLD_ENV, &first);
    ask_in(world, WORLD_ENV, &second);
    wait_for_answer(world, &second);
    assert_string_equal(first.id, second.id);
    assert_int_equal(schedules_count(world->schedules, world->env), 1);
    pass(world, 2 * MINUTE);
    assert_fired(world, first.id, "2026-03-01T00:02");
}

static void second_create_with_a_key_succeeds_if_the_first_failed(void **state)
{
    struct world *world = *state;
    struct asking first = { .cron = "* * * * *", .zone = "UTC", .key = "k" };
    struct asking second = first;
    forgetful->loss = LOSE_WRITE;
    forgetful->countdown = 1;
    ask_in(world, WORLD_ENV, &first);
    ask_in(world, WORLD_ENV, &second);
    wait_for_answer(world, &second);
    assert_int_equal(first.status, ERR_STORE);
    assert_int_equal(second.status, OK);
    assert_int_equal(schedules_count(world->schedules, world->env), 1);
}

static void a_key_used_in_another_environment_names_another_schedule(void **state)
{
    struct world *world = *state;
    struct environment *other = engine_environment(world->engine, WORLD_ENV + 1);
    struct asking first = { .cron = "* * * * *", .zone = "UTC", .key = "k" };
    assert_int_equal(ask(world, &first), OK);
    struct asking second = { .cron = "* * * * *", .zone = "UTC", .key = "k" };
    ask_in(world, WORLD_ENV + 1, &second);
    wait_for_answer(world, &second);
    assert_int_equal(second.status, OK);
    assert_string_not_equal(first.id, second.id);
    for (int round = 0; round < 2; round++) {
        assert_string_equal(schedules_by_key(world->schedules, world->env, SLICE("k"))->id,
                            first.id);
        assert_string_equal(schedules_by_key(world->schedules, other, SLICE("k"))->id,
                            second.id);
        assert_int_equal(schedules_count(world->schedules, world->env), 1);
        assert_int_equal(schedules_count(world->schedules, other), 1);
        restart(world, 0);
        other = engine_environment(world->engine, WORLD_ENV + 1);
    }
    pass(world, MINUTE);
    assert_int_equal(fired_by(world, first.id).count, 1);
    assert_int_equal(other->unfinished, 1);
}

static void removal_waits_for_a_firing_in_progress(void **state)
{
    struct world *world = *state;
    struct asking asking = make(world, "* * * * *", "UTC");
    fake_store_set_delay(world->fake, 50, 0);
    while (loop_wall_ms(world->loop) < begin_ms + MINUTE + 10)
        loop_turn(world->loop, 1);
    asking.remove = true;
    assert_int_equal(ask(world, &asking), OK);
    pass(world, 3 * MINUTE);
    assert_fired(world, asking.id, "2026-03-01T00:01");
    assert_int_equal(ask(world, &asking), ERR_NOT_FOUND);
    restart(world, MINUTE);
    pass(world, MINUTE);
    assert_fired(world, asking.id, "2026-03-01T00:01");
}

static void full_queue_delays_the_latest_time(void **state)
{
    (void)state;
    void *made = create_world_at(begin_ms, (struct engine_options){ .queue_size = 2 });
    struct world *world = made;
    struct asking asking = make(world, "* * * * *", "UTC");
    pass(world, 2 * MINUTE);
    pass(world, 2 * MINUTE + 30 * SECOND);
    assert_fired(world, asking.id, "2026-03-01T00:01 2026-03-01T00:02");
    assert_int_equal(cancel(world, run_of(world, begin_ms + MINUTE)->id), OK);
    pass(world, 2 * SECOND);
    assert_fired(world, asking.id, "2026-03-01T00:01 2026-03-01T00:02 2026-03-01T00:04");
    destroy_world(&made);
}

static size_t count_in(const char *text, const char *word)
{
    size_t count = 0;
    while ((text = strstr(text, word)) && ++count)
        text++;
    return count;
}

/* Collects the log lines of the next ms milliseconds. */
static void read_log(struct world *world, int64_t ms, char *lines, size_t size)
{
    int file = memfd_create("log", 0), real = dup(STDERR_FILENO);
    assert_true(file >= 0 && real >= 0 && dup2(file, STDERR_FILENO) >= 0);
    log_configure(LOG_WARN, LOG_LOGFMT);
    pass(world, ms);
    log_configure(LOG_ERROR, LOG_LOGFMT);
    dup2(real, STDERR_FILENO);
    close(real);
    ssize_t len = pread(file, lines, size - 1, 0);
    assert_true(len >= 0);
    lines[len] = '\0';
    close(file);
}

static void failed_firings_are_logged_once_a_minute_with_a_count(void **state)
{
    (void)state;
    enum { MANY = 50 };
    static char lines[64 * 1024];
    void *made = create_world_at(begin_ms, (struct engine_options){ .queue_size = 1 });
    struct world *world = made;
    make(world, "* * * * *", "UTC");
    pass(world, MINUTE); /* its run fills the queue */
    for (int i = 1; i < MANY; i++)
        make(world, "* * * * *", "UTC");
    read_log(world, MINUTE, lines, sizeof(lines));
    assert_int_equal(count_in(lines, "event=\"schedule did not fire\" environment="), 1);
    read_log(world, MINUTE, lines, sizeof(lines));
    assert_int_equal(count_in(lines, "not fire"), 1);
    assert_non_null(strstr(lines, " count=49\n"));
    destroy_world(&made);
}

static void lost_commit_of_a_firing_is_retried(void **state)
{
    struct world *world = *state;
    struct asking asking = make(world, "* * * * *", "UTC");
    forgetful->loss = LOSE_WRITE;
    forgetful->countdown = 1;
    pass(world, MINUTE + 3 * SECOND);
    assert_fired(world, asking.id, "2026-03-01T00:01");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, create_world, destroy_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_schedule_fires_at_its_times_and_not_before),
        TEST(payload_contains_the_times_as_dates),
        TEST(many_schedules_of_one_minute_all_fire),
        TEST(disabled_schedule_neither_fires_nor_catches_up),
        TEST(drained_engine_fires_no_schedule),
        TEST(schedules_made_in_one_millisecond_keep_their_order),
        TEST(schedules_of_a_retired_environment_do_not_fire),
        cmocka_unit_test(each_time_fires_once_whatever_commit_is_lost_in_a_crash),
        TEST(each_time_fires_once_whenever_the_engine_restarts),
        TEST(only_the_latest_missed_time_fires),
        TEST(clock_set_back_fires_no_time_twice),
        TEST(a_clock_set_forward_fires_the_latest_within_a_second),
        cmocka_unit_test(times_around_a_clock_change_follow_the_rule),
        TEST(concurrent_creates_with_one_key_make_one_schedule),
        TEST(second_create_with_a_key_succeeds_if_the_first_failed),
        TEST(a_key_used_in_another_environment_names_another_schedule),
        TEST(removal_waits_for_a_firing_in_progress),
        cmocka_unit_test(full_queue_delays_the_latest_time),
        cmocka_unit_test(failed_firings_are_logged_once_a_minute_with_a_count),
        TEST(lost_commit_of_a_firing_is_retried),
    };
    log_configure(LOG_ERROR, LOG_LOGFMT);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
