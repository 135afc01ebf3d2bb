/* Why a run waits: the first reason that applies, since when, and after how many runs. */
#include "core/fleet/waiting.h"

#include "core/fleet/dev_sessions.h"
#include "tests/support/world/calls.h"
#include "tests/support/world/unit.h"

static const char thrown[] = "{\"type\":\"STRING_ERROR\",\"raw\":\"no\"}";

static struct world *make(bool is_prod, uint32_t concurrency)
{
    struct world_options options = { .engine.concurrency = concurrency,
                                     .is_prod = is_prod };
    return world_create(&options);
}

static struct waiting look(struct world *world, const char *id)
{
    const struct tracked *run = environment_find(world->env, slice_of(id));
    struct waiting waiting;
    assert_non_null(run);
    waiting_look(run, engine_full_quota(run->env), &waiting);
    return waiting;
}

/* The sentence must contain these words; a run that does not wait has no sentence. */
static struct waiting assert_waits(struct world *world, const char *id, const char *reason,
                                   const char *words)
{
    struct waiting waiting = look(world, id);
    struct buf text = { 0 };
    assert_string_equal(waiting_name(waiting.reason), reason);
    waiting_explain(environment_find(world->env, slice_of(id)), &waiting, &text);
    buf_add_char(&text, '\0');
    if (!strstr(text.ptr, words))
        fail_msg("'%s' does not say '%s'", text.ptr, words);
    buf_finish(&text);
    return waiting;
}

static void assert_limit(struct waiting waiting, uint32_t limit, uint32_t running)
{
    assert_true(waiting.has_limit);
    assert_int_equal(waiting.limit, limit);
    assert_int_equal(waiting.running, running);
}

static void configure(struct world *world, bool paused, int limit)
{
    struct queue_settings settings = { .paused = paused,
                                       .overridden = limit >= 0,
                                       .override = limit >= 0 ? (uint32_t)limit : 0 };
    queues_configure(&world->env->queues, SLICE("task/hello"), &settings);
}

static void first_reason_for_waiting_is_named(void **state)
{
    struct world *world = make(true, 1);
    (void)state;
    configure(world, true, 0);
    struct triggered got = trigger(world, (struct wish){ 0 });
    assert_waits(world, got.id, "version", "No version is registered");
    register_worker(world, "20260101.1", "other", 3);
    world_settle(world);
    assert_waits(world, got.id, "version", "has no task hello");
    register_worker(world, "20260101.2", "hello,other", 3);
    world_settle(world);
    int64_t since = run_now(world, got.id)->queued_at;
    assert_waits(world, got.id, "no_worker", "No worker requests runs");

    struct triggered other = trigger(world, (struct wish){ .task = "other" });
    execute(world, other.id);
    assert_waits(world, got.id, "queue_paused", "task/hello is paused; resume");
    configure(world, false, 0);
    assert_limit(assert_waits(world, got.id, "queue_limit", "is 0; set"), 0, 0);
    configure(world, false, -1);
    world_pass(world, 1000);
    struct waiting waiting =
        assert_waits(world, got.id, "environment_limit", "limit, 1; the run starts");
    assert_limit(waiting, 1, 1);
    assert_true(waiting.since == since && !waiting.until);
    assert_int_equal(succeed(world, other.id, "1"), OK);
    assert_waits(world, other.id, "", "");
    assert_waits(world, got.id, "room",
                 "no free capacity for a micro (0.25 cores, 0.25 GB)");
    assert_string_equal(dequeue(world), got.id);
    assert_waits(world, got.id, "", "");
    assert_int_equal(start(world, got.id), OK);
    assert_waits(world, got.id, "", "");
    assert_int_equal(cancel(world, got.id), OK);
    assert_waits(world, got.id, "", "");
    world_destroy(world);
}

static void full_concurrency_key_and_full_queue_are_distinguished(void **state)
{
    struct world *world = make(true, 10);
    (void)state;
    register_worker(world, "20260101.1", "hello", 3);
    configure(world, false, 2);
    struct triggered keyed[3], plain[3];
    for (int i = 0; i < 3; i++) {
        keyed[i] = trigger(world, (struct wish){ .concurrency_key = "k" });
        plain[i] = trigger(world, (struct wish){ 0 });
    }
    for (int i = 0; i < 4; i++)
        assert_string_not_equal(dequeue(world), "");
    assert_limit(assert_waits(world, keyed[2].id, "concurrency_key", "concurrencyKey"), 2,
                 2);
    assert_limit(assert_waits(world, plain[2].id, "queue_limit",
                              "allows 2, and 2 execute; the run starts"),
                 2, 2);
    assert_limit(assert_waits(world, plain[2].id, "queue_limit", "task/hello"), 2, 2);
    assert_int_equal(start(world, plain[0].id), OK);
    assert_int_equal(succeed(world, plain[0].id, "1"), OK);
    assert_waits(world, plain[2].id, "room", "");
    assert_waits(world, keyed[2].id, "concurrency_key", "");
    world_destroy(world);
}

static void pause_names_its_end(void **state)
{
    struct world *world = make(true, 10);
    (void)state;
    int64_t now = loop_wall_ms(world->loop);
    register_worker(world, "20260101.1", "hello", 9);
    struct triggered got = trigger(world, (struct wish){ .delay_ms = 5000 });
    struct waiting waiting =
        assert_waits(world, got.id, "delay", "until 2027-01-15T08:00:05.000Z; reschedule");
    assert_true(waiting.since == now && waiting.until == now + 5000);
    world_pass(world, 5000);
    assert_true(assert_waits(world, got.id, "no_worker", "").since == now + 5000);

    assert_string_equal(dequeue(world), got.id);
    world_pass(world, 60000); /* the lease expires */
    waiting = assert_waits(world, got.id, "retry", "did not start it");
    assert_int_equal(waiting.until, run_now(world, got.id)->due_at);
    world_pass(world, 2000);
    assert_int_equal(assert_waits(world, got.id, "no_worker", "").since,
                     run_now(world, got.id)->due_at);

    execute(world, got.id);
    static const int64_t delays[] = { 1000, 40000 }; /* retried by the worker; queued */
    for (int i = 0; i < 2; i++) {
        now = loop_wall_ms(world->loop);
        assert_int_equal(break_down(world, got.id, thrown, delays[i]), OK);
        waiting = assert_waits(world, got.id, "retry",
                               i ? "Attempt 2 failed; the next one begins at 20"
                                 : "Attempt 1 failed");
        assert_true(waiting.since >= now && waiting.since < now + 100);
        assert_true(waiting.until == waiting.since + delays[i]);
        if (!i)
            assert_int_equal(start(world, got.id), OK);
    }
    world_pass(world, 40000);
    assert_waits(world, got.id, "room", "");
    world_destroy(world);
}

static void a_blocked_run_names_what_it_waits_for(void **state)
{
    struct world *world = make(true, 10);
    (void)state;
    register_worker(world, "20260101.1", "hello", 3);
    struct triggered child = trigger(world, (struct wish){ .delay_ms = 100000000 });
    int64_t now = loop_wall_ms(world->loop);
    const struct wait time = { .type = WAIT_TIME,
                               .id = SLICE("waitpoint_1"),
                               .until = now + 60000 };
    const struct wait token = { .type = WAIT_TOKEN,
                                .id = SLICE("waitpoint_2"),
                                .until = now + 70000 };
    const struct wait run = { .type = WAIT_RUN, .id = slice_of(child.id) };
    write_token(world, &(struct waitpoint){ .id = "waitpoint_2", .created_at = now });
    const struct {
        struct wait waits[2];
        size_t count;
        const char *words;
        int64_t until;
    } cases[] = {
        { { time },
          1,
          "a time, 2027-01-15T08:01:00.000Z; it continues by itself",
          now + 60000 },
        { { token },
          1,
          "the token waitpoint_2; complete the token, or it times out at 2027",
          now + 70000 },
        { { run }, 1, "; see what that one waits for", 0 },
        { { time, token }, 2, " and 1 more", now + 70000 },
        { { time, run }, 2, " and 1 more", 0 },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct triggered got = trigger(world, (struct wish){ 0 });
        execute(world, got.id);
        assert_int_equal(block_by(world, got.id, cases[i].waits, cases[i].count), OK);
        struct waiting waiting = assert_waits(world, got.id, "waitpoint", cases[i].words);
        assert_int_equal(waiting.until, cases[i].until);
        assert_int_equal(waiting.since, run_now(world, got.id)->updated_at);
    }
    world_destroy(world);
}

static void run_whose_wait_has_ended_names_the_limit_that_holds_it(void **state)
{
    struct world *world = make(true, 10);
    (void)state;
    register_worker(world, "20260101.1", "hello,other", 3);
    configure(world, false, 1);
    struct triggered parent = trigger(world, (struct wish){ 0 });
    execute(world, parent.id);
    assert_int_equal(wait_for(world, parent.id, 100), OK);
    struct triggered next = trigger(world, (struct wish){ 0 });
    execute(world, next.id);
    world_pass(world, 1000);
    assert_limit(assert_waits(world, parent.id, "queue_limit",
                              "allows 1, and 1 executes; the run continues"),
                 1, 1);
    assert_false(waiting_is_unserved(world->env));
    configure(world, false, -1);
    world->env->queues.limit = 1;
    assert_limit(
        assert_waits(world, parent.id, "environment_limit", "1; the run continues"), 1, 1);
    world_destroy(world);
}

static void in_dev_a_run_waits_for_a_session_with_its_task(void **state)
{
    struct world *world = make(false, 10);
    (void)state;
    struct triggered got = trigger(world, (struct wish){ 0 });
    assert_waits(world, got.id, "no_worker", "start one with trigger dev");
    configure(world, true, -1);
    assert_waits(world, got.id, "no_worker", "");
    register_worker(world, "20260101.1", "hello", 3);
    world_settle(world);
    assert_waits(world, got.id, "queue_paused", "");
    configure(world, false, -1);
    assert_waits(world, got.id, "no_worker", "All workers are busy");
    struct triggered other = trigger(world, (struct wish){ .task = "other" });
    assert_waits(world, other.id, "version", "has the task other");
    struct triggered locked = trigger(world, (struct wish){ .version = "20250101.1" });
    assert_waits(world, locked.id, "version", "Version 20250101.1, which it is locked to");
    world_pass(world, 60000); /* the session ends */
    world_settle(world);
    assert_waits(world, got.id, "no_worker", "start one with trigger dev");
    world_destroy(world);
}

static void in_dev_a_closed_connection_is_reported_before_the_session_ends(void **state)
{
    struct world *world = make(false, 10);
    (void)state;
    dev_sessions_connect(world->env, SESSION_SOCKET);
    dev_sessions_connect(world->env, SESSION_STREAM);
    register_worker(world, "20260101.1", "hello", 3);
    world_settle(world);
    struct triggered got = trigger(world, (struct wish){ 0 });
    dev_sessions_disconnect(world->env, SESSION_STREAM); /* as it does twice a minute */
    world_pass(world, 2000);
    assert_waits(world, got.id, "no_worker", "All workers are busy");
    dev_sessions_disconnect(world->env, SESSION_SOCKET);
    world_pass(world, 7000);
    assert_waits(world, got.id, "no_worker",
                 "disconnected 7 s ago; start trigger dev again");
    configure(world, true, -1);
    assert_waits(world, got.id, "no_worker", "disconnected 7 s ago");
    configure(world, false, -1);
    dev_sessions_connect(world->env, SESSION_SOCKET);
    assert_waits(world, got.id, "no_worker", "All workers are busy");
    dev_sessions_disconnect(world->env, SESSION_SOCKET);
    world_pass(world, 2000);
    dev_sessions_renew(world->env); /* a CLI that needs no connection */
    assert_waits(world, got.id, "no_worker", "All workers are busy");
    world_destroy(world);
}

static void in_dev_the_disconnected_one_of_two_sessions_is_reported(void **state)
{
    struct world *world = make(false, 10);
    (void)state;
    dev_sessions_connect(world->env, SESSION_SOCKET);
    register_worker(world, "20260101.1", "hello", 3);
    world_pass(world, 1000);
    dev_sessions_connect(world->env, SESSION_SOCKET);
    register_worker(world, "20260101.2", "other", 3);
    struct triggered got = trigger(world, (struct wish){ .task = "other" });
    dev_sessions_disconnect(world->env, SESSION_SOCKET);
    world_pass(world, 1000);
    assert_waits(world, got.id, "no_worker", "All workers are busy");
    dev_sessions_ask(world->env, (struct slice){ 0 });
    world_pass(world, 7000);
    assert_waits(world, got.id, "no_worker",
                 "All workers are busy"); /* its session lives */
    dev_sessions_disconnect(world->env, SESSION_SOCKET);
    dev_sessions_connect(world->env, SESSION_SOCKET);
    world_pass(world, 7000);
    assert_waits(world, got.id, "no_worker", "disconnected 7 s");
    dev_sessions_renew(world->env);
    assert_waits(world, got.id, "no_worker", "All workers are busy");
    world_destroy(world);
}

/* Runs that wait for a version are not queued: they do not count. */
static void in_dev_runs_of_an_ended_session_count_as_unserved(void **state)
{
    struct world *world = make(false, 10);
    (void)state;
    assert_int_equal(waiting_unserved(world->env), 0);
    dev_sessions_connect(world->env, SESSION_SOCKET);
    register_worker(world, "20260101.1", "hello", 3);
    world_settle(world);
    trigger(world, (struct wish){ 0 });
    trigger(world, (struct wish){ 0 });
    trigger(world, (struct wish){ .task = "unknown" });
    world_pass(world, 2000);
    assert_int_equal(waiting_unserved(world->env), 0);
    dev_sessions_disconnect(world->env, SESSION_SOCKET);
    world_pass(world, 7000);
    assert_int_equal(waiting_unserved(world->env), 2);
    dev_sessions_connect(world->env, SESSION_SOCKET);
    assert_int_equal(waiting_unserved(world->env), 0);
    dev_sessions_disconnect(world->env, SESSION_SOCKET);
    world_pass(world, 60000); /* its session ends */
    world_settle(world);
    assert_null(dev_sessions_next(world->env, NULL));
    assert_int_equal(waiting_unserved(world->env), world->env->queues.waiting);
    world_destroy(world);
}

static void queued_runs_without_a_worker_count_as_unserved(void **state)
{
    struct world *world = make(true, 10);
    (void)state;
    register_worker(world, "20260101.1", "hello", 3);
    world_settle(world);
    struct triggered first = trigger(world, (struct wish){ 0 });
    trigger(world, (struct wish){ 0 });
    assert_int_equal(waiting_unserved(world->env), 2);
    execute(world, first.id);
    assert_int_equal(waiting_unserved(world->env), 0); /* the worker is busy */
    world_destroy(world);
}

static void after_a_start_the_reason_says_that_a_worker_may_reconnect(void **state)
{
    static const char soon[] = "The gateway started 8 s ago. Workers with this task "
                               "reconnect within 52 s at the latest";
    struct world *world = make(false, 10);
    (void)state;
    register_worker(world, "20260101.1", "hello", 3);
    world_settle(world);
    struct triggered nobodys = trigger(world, (struct wish){ .task = "other" });
    struct triggered queued = trigger(world, (struct wish){ 0 });
    assert_waits(world, nobodys.id, "version", "has the task other; start one from");
    world_restart(world);
    const struct waiting_log *waiting_log = &world->env->fleet->waiting_log;
    load_worker(world, "20260101.1", "hello", 3);
    dev_sessions_start(world->env);
    world_pass(world, 8000);
    assert_waits(world, nobodys.id, "version", soon);
    assert_waits(world, queued.id, "no_worker", soon);
    dev_sessions_ask(world->env, SLICE("20260101.1"));
    assert_waits(world, nobodys.id, "version", soon);
    assert_waits(world, queued.id, "no_worker", "All workers are busy");
    world_pass(world, 51000);
    assert_waits(world, nobodys.id, "version", "in 1 s");
    assert_false(waiting_log->is_logged);
    dev_sessions_ask(world->env, SLICE("20260101.1"));
    world_pass(world, 2000);
    assert_waits(world, nobodys.id, "version", "has the task other; start one from");
    assert_true(waiting_log->is_logged);
    world_pass(world, 60000); /* that worker has left */
    assert_waits(world, nobodys.id, "version", "has this task; start one with");
    world_destroy(world);
}

static void position_in_the_queue_is_counted_up_to_a_thousand(void **state)
{
    struct world *world = make(true, 10);
    (void)state;
    register_worker(world, "20260101.1", "hello", 3);
    char ids[1101][ID_MAX];
    for (int i = 0; i < 1101; i++)
        snprintf(ids[i], ID_MAX, "%s", trigger(world, (struct wish){ 0 }).id);
    struct triggered other = trigger(world, (struct wish){ .concurrency_key = "k" });
    static const int places[] = { 0, 1, 77, 999, 1000, 1001, 1100 };
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        struct waiting waiting = look(world, ids[places[i]]);
        assert_true(waiting.is_in_line);
        assert_int_equal(waiting.ahead, places[i] < 1000 ? places[i] : 1000);
    }
    assert_int_equal(look(world, other.id).ahead, 0);
    world_destroy(world);
}

static void restart_keeps_the_reason_for_waiting(void **state)
{
    struct world *world = make(true, 1);
    (void)state;
    register_worker(world, "20260101.1", "hello", 3);
    struct triggered first = trigger(world, (struct wish){ 0 });
    struct triggered got = trigger(world, (struct wish){ 0 });
    execute(world, first.id);
    struct waiting before = assert_waits(world, got.id, "environment_limit", "");
    world_pass(world, 5000);
    world_restart(world);
    load_worker(world, "20260101.1", "hello", 3);
    struct waiting after = assert_waits(world, got.id, "environment_limit", "");
    assert_memory_equal(&after, &before, sizeof(after));
    world_destroy(world);
}

/* ---- the log ---- */

static void run_without_a_worker_for_ten_seconds_is_logged(void **state)
{
    struct world *world = make(true, 10);
    const struct waiting_log *waiting_log = &world->env->fleet->waiting_log;
    (void)state;
    struct triggered first = trigger(world, (struct wish){ 0 });
    struct triggered second = trigger(world, (struct wish){ .task = "other" });
    assert_string_equal(waiting_log->first, first.id);
    assert_string_equal(waiting_log->newest, second.id);
    world_pass(world, 9990);
    assert_false(waiting_log->is_logged);
    world_pass(world, 100);
    assert_true(waiting_log->is_logged);
    world_pass(world, 30000);
    assert_true(waiting_log->is_logged);
    assert_string_equal(waiting_log->first, first.id);

    register_worker(world, "20260101.1", "hello", 3);
    world_settle(world);
    execute(world, first.id);
    world_pass(world, 10000);
    assert_string_equal(waiting_log->first, second.id);
    assert_true(waiting_log->is_logged);
    assert_int_equal(cancel(world, second.id), OK);
    world_pass(world, 10000);
    assert_string_equal(waiting_log->first, "");
    assert_int_equal(waiting_log->timer.place, 0);
    world_destroy(world);
}

static void project_over_its_quota_is_logged_despite_a_worker(void **state)
{
    struct world *world = make(true, 1);
    const struct waiting_log *waiting_log = &world->env->fleet->waiting_log;
    struct quota project = { .limit = 1 << 20 };
    (void)state;
    engine_join_stored(world->engine, WORLD_ENV, &project);
    register_worker(world, "20260101.1", "hello", 3);
    struct triggered first = trigger(world, (struct wish){ 0 });
    struct triggered second = trigger(world, (struct wish){ 0 });
    execute(world, first.id);
    assert_waits(world, second.id, "environment_limit", "");
    world_pass(world, 10000);
    assert_false(waiting_log->is_logged);

    size_t before = project.limit;
    project.limit = project.used;
    configure(world, true, -1);
    struct waiting waiting = assert_waits(world, second.id, "storage_quota",
                                          "bytes; raise storage-quota, or remove data");
    assert_false(waiting.has_limit);
    assert_true(waiting.is_in_line);
    assert_waits(world, first.id, "", "");
    world_pass(world, 10000);
    assert_true(waiting_log->is_logged);
    project.limit = before;
    assert_waits(world, second.id, "queue_paused", "");
    world_destroy(world);
}

static void run_that_a_worker_takes_in_time_is_not_logged(void **state)
{
    struct world *world = make(true, 1);
    const struct waiting_log *waiting_log = &world->env->fleet->waiting_log;
    (void)state;
    register_worker(world, "20260101.1", "hello", 3);
    struct triggered first = trigger(world, (struct wish){ 0 });
    struct triggered second = trigger(world, (struct wish){ 0 });
    execute(world, first.id);
    for (int i = 0; i < 5; i++) {
        world_pass(world, 10000); /* the second waits for the slot of the first */
        assert_false(waiting_log->is_logged);
    }
    assert_waits(world, second.id, "environment_limit", "");
    assert_int_equal(succeed(world, first.id, "1"), OK);
    world_pass(world, 10000);
    assert_true(waiting_log->is_logged);
    world_destroy(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_reason_for_waiting_is_named),
        cmocka_unit_test(full_concurrency_key_and_full_queue_are_distinguished),
        cmocka_unit_test(pause_names_its_end),
        cmocka_unit_test(a_blocked_run_names_what_it_waits_for),
        cmocka_unit_test(run_whose_wait_has_ended_names_the_limit_that_holds_it),
        cmocka_unit_test(in_dev_a_run_waits_for_a_session_with_its_task),
        cmocka_unit_test(in_dev_a_closed_connection_is_reported_before_the_session_ends),
        cmocka_unit_test(in_dev_the_disconnected_one_of_two_sessions_is_reported),
        cmocka_unit_test(in_dev_runs_of_an_ended_session_count_as_unserved),
        cmocka_unit_test(queued_runs_without_a_worker_count_as_unserved),
        cmocka_unit_test(after_a_start_the_reason_says_that_a_worker_may_reconnect),
        cmocka_unit_test(position_in_the_queue_is_counted_up_to_a_thousand),
        cmocka_unit_test(restart_keeps_the_reason_for_waiting),
        cmocka_unit_test(run_without_a_worker_for_ten_seconds_is_logged),
        cmocka_unit_test(project_over_its_quota_is_logged_despite_a_worker),
        cmocka_unit_test(run_that_a_worker_takes_in_time_is_not_logged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
