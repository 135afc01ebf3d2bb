/* Which worker versions are connected in dev, and which runs each of them may get. */
#include "core/fleet/dev_sessions.h"

#include "base/mem.h"
#include "core/fleet/versions.h"
#include "tests/support/world/calls.h"
#include "tests/support/world/unit.h"

static int create_world(void **state)
{
    *state = world_create(NULL);
    return 0;
}

static int destroy_world(void **state)
{
    world_destroy(*state);
    return 0;
}

/* ---- a worker that requests runs ---- */

struct asking {
    struct dequeue dequeue; /* must be first */
    enum err status;
    bool done;
    char run[ID_MAX], version[24];
};

static void on_asked(struct dequeue *dequeue, enum err status)
{
    struct asking *asking = container_of(dequeue, struct asking, dequeue);
    const struct run *run = status ? NULL : dequeue->command.run;
    asking->status = status;
    asking->done = true;
    snprintf(asking->run, sizeof(asking->run), "%s", run ? run->id : "");
    if (run)
        snprintf(asking->version, sizeof(asking->version), "%s", run->worker_version->data);
}

/* Here, a worker's id is its version. */
static void begin_asking(struct world *world, struct asking *asking, const char *version)
{
    *asking = (struct asking){ 0 };
    assert_int_equal(dequeue_begin_for(world->engine, world->env, slice_of(version),
                                       &asking->dequeue, 10000, on_asked),
                     OK);
    world_settle(world);
}

static void leave(struct world *world, struct asking *asking)
{
    if (!asking->done)
        dequeue_cancel(&asking->dequeue);
    world_settle(world);
    assert_true(asking->done);
}

/* Returns the run that it gets at once, or "". */
static const char *ask(struct world *world, const char *version)
{
    static struct asking asking;
    begin_asking(world, &asking, version);
    if (!asking.done)
        leave(world, &asking);
    if (asking.run[0] && !run_now(world, asking.run)->attempt)
        assert_string_equal(asking.version,
                            run_now(world, asking.run)->worker_version->data);
    return asking.run;
}

static bool is_there(struct world *world, const char *version)
{
    return dev_sessions_asking(world->env, slice_of(version)) != NULL;
}

static void register_version(struct world *world, const char *version, const char *tasks)
{
    register_worker(world, version, tasks, 3);
    world_settle(world);
}

static struct triggered make(struct world *world, const char *task)
{
    return trigger(world, (struct wish){ .task = task });
}

/* Connects two CLIs, which both request runs. */
static void connect_two(struct world *world)
{
    dev_sessions_connect(world->env, SESSION_SOCKET);
    register_version(world, "20260101.1", "a,both");
    assert_string_equal(ask(world, "20260101.1"), "");
    dev_sessions_connect(world->env, SESSION_SOCKET);
    register_version(world, "20260101.2", "b,both");
    assert_string_equal(ask(world, "20260101.2"), "");
}

/* ---- which runs each gets ---- */

static void worker_gets_only_tasks_of_its_version(void **state)
{
    struct world *world = *state;
    connect_two(world);
    struct triggered a = make(world, "a"), b = make(world, "b"), both = make(world, "both");
    assert_string_equal(ask(world, "20260101.1"), a.id);
    assert_string_equal(run_now(world, a.id)->worker_version->data, "20260101.1");
    assert_string_equal(ask(world, "20260101.1"), "");
    assert_string_equal(ask(world, "20260101.2"), b.id);
    assert_string_equal(ask(world, "20260101.2"), both.id);
    assert_string_equal(run_now(world, both.id)->worker_version->data, "20260101.2");
}

static void new_run_goes_to_the_waiting_worker_with_its_task(void **state)
{
    struct world *world = *state;
    struct asking one, two;
    connect_two(world);
    begin_asking(world, &two, "20260101.2");
    begin_asking(world, &one, "20260101.1");
    struct triggered a = make(world, "a");
    world_settle(world);
    assert_true(one.done);
    assert_string_equal(one.run, a.id);
    assert_false(two.done);
    leave(world, &two);
}

static void queue_of_two_sessions_keeps_its_limit_and_blocks_no_session(void **state)
{
    struct world *world = *state;
    connect_two(world);
    queues_set_limit(&world->env->queues, SLICE("task/a"), 1);
    struct triggered one = make(world, "a"), two = make(world, "a"), b = make(world, "b");
    const char *got = ask(world, "20260101.1");
    assert_true(!strcmp(got, one.id) || !strcmp(got, two.id));
    assert_string_equal(ask(world, "20260101.1"), "");
    assert_string_equal(ask(world, "20260101.2"), b.id);
}

static void run_without_a_worker_does_not_block_others(void **state)
{
    struct world *world = *state;
    connect_two(world);
    struct triggered none = make(world, "none");
    assert_status(world, none.id, RUN_PENDING_VERSION);
    assert_int_equal(versions_check(world->env, run_now(world, none.id)),
                     VERSION_LACKS_TASK);
    struct triggered locked =
        trigger(world, (struct wish){ .task = "a", .version = "20250101.1" });
    assert_status(world, locked.id, RUN_PENDING_VERSION);
    assert_int_equal(versions_check(world->env, run_now(world, locked.id)), VERSION_NONE);
    struct triggered a = make(world, "a");
    assert_string_equal(ask(world, "20260101.1"), a.id);
}

static void unknown_worker_gets_no_run(void **state)
{
    struct world *world = *state;
    connect_two(world);
    struct triggered a = make(world, "a");
    assert_string_equal(ask(world, "worker_unknown"), "");
    assert_string_equal(ask(world, "20260101.1"), a.id);
}

static void two_workers_of_one_version_share_a_session(void **state)
{
    struct world *world = *state;
    struct asking one, two;
    register_version(world, "20260101.1", "a");
    begin_asking(world, &one, "20260101.1");
    begin_asking(world, &two, "20260101.1");
    make(world, "a");
    make(world, "a");
    world_settle(world);
    assert_true(one.done && two.done);
    assert_string_not_equal(one.run, two.run);
}

/* ---- another version of the same CLI ---- */

static void new_registration_of_a_cli_replaces_its_version(void **state)
{
    struct world *world = *state;
    struct asking held;
    dev_sessions_connect(world->env, SESSION_SOCKET);
    register_version(world, "20260101.1", "a,both");
    begin_asking(world, &held, "20260101.1");
    struct triggered locked;
    register_version(world, "20260101.2", "both");
    assert_false(is_there(world, "20260101.1"));
    struct triggered gone = make(world, "a"), both = make(world, "both");
    locked = trigger(world, (struct wish){ .task = "a", .version = "20260101.1" });
    assert_status(world, gone.id, RUN_PENDING_VERSION);
    assert_false(held.done);
    world_pass(world, 250); /* it is answered soon, and then names its new version */
    assert_true(held.done);
    assert_string_equal(held.run, "");
    assert_string_equal(ask(world, "20260101.1"), ""); /* a late request */
    assert_string_equal(ask(world, "20260101.2"), both.id);
    assert_string_equal(ask(world, "20260101.2"), locked.id);
    assert_string_equal(run_now(world, locked.id)->worker_version->data, "20260101.1");
}

static void new_registration_replaces_the_session_without_requests(void **state)
{
    struct world *world = *state;
    connect_two(world);
    world_pass(world, 1000);
    ask(world, "20260101.1");
    register_version(world, "20260101.3", "c");
    assert_true(is_there(world, "20260101.1"));
    world_pass(world, 300);
    ask(world, "20260101.3"); /* it was the first to do so */
    world_pass(world, 300);
    ask(world, "20260101.2");
    struct triggered locked =
        trigger(world, (struct wish){ .task = "a", .version = "20260101.1" });
    assert_string_equal(ask(world, "20260101.3"), "");
    world_pass(world, 3000);
    assert_false(is_there(world, "20260101.1"));
    assert_true(is_there(world, "20260101.2"));
    assert_string_equal(ask(world, "20260101.3"), locked.id);
    struct triggered b = make(world, "b"), a = make(world, "a");
    assert_status(world, a.id, RUN_PENDING_VERSION);
    assert_string_equal(ask(world, "20260101.2"), b.id);
}

static void request_with_a_version_restores_its_session(void **state)
{
    struct world *world = *state;
    dev_sessions_connect(world->env, SESSION_SOCKET);
    register_version(world, "20260101.1", "a");
    register_version(world, "20260101.2", "b");
    assert_false(is_there(world, "20260101.1"));
    struct triggered a = make(world, "a");
    assert_status(world, a.id, RUN_PENDING_VERSION);
    world_pass(world, 5000);
    assert_string_equal(ask(world, "20260101.1"), a.id);
    assert_true(is_there(world, "20260101.2"));
}

/* ---- coming and going ---- */

static void session_ends_after_a_silent_minute(void **state)
{
    struct world *world = *state;
    struct asking held;
    connect_two(world);
    begin_asking(world, &held, "20260101.2");
    struct triggered a = make(world, "a");
    for (int i = 0; i < 5; i++) {
        world_pass(world, 9900);
        leave(world, &held);
        begin_asking(world, &held, "20260101.2");
    }
    world_pass(world, 9900);
    assert_status(world, a.id, RUN_QUEUED);
    world_pass(world, 700);
    assert_false(is_there(world, "20260101.1"));
    assert_true(is_there(world, "20260101.2"));
    assert_status(world, a.id, RUN_PENDING_VERSION);
    leave(world, &held);
    assert_string_equal(ask(world, "20260101.1"), a.id); /* its session is back */
}

static void busy_session_lives_while_its_runs_send_heartbeats(void **state)
{
    struct world *world = *state;
    register_version(world, "20260101.1", "a");
    struct triggered busy = make(world, "a");
    assert_string_equal(ask(world, "20260101.1"), busy.id);
    for (int i = 0; i < 10; i++) {
        world_pass(world, 30000);
        dev_sessions_touch(world->env, run_now(world, busy.id));
    }
    assert_true(is_there(world, "20260101.1"));
    world_pass(world, 60000);
    assert_false(is_there(world, "20260101.1"));
}

/* ---- one of several has left ---- */

/* Lets time pass while the CLI of the first version holds requests. */
static void pass_with_the_first(struct world *world, int seconds)
{
    struct asking held;
    for (int i = 0; i < seconds; i++) {
        begin_asking(world, &held, "20260101.1");
        world_pass(world, 1000);
        leave(world, &held);
        assert_string_equal(held.run, "");
    }
}

static void shared_task_goes_to_the_remaining_session(void **state)
{
    struct world *world = *state;
    struct asking held, left;
    connect_two(world);
    begin_asking(world, &held, "20260101.2");
    world_pass(world, 3000);
    dev_sessions_disconnect(world->env, SESSION_SOCKET);
    leave(world, &held);
    struct triggered both = make(world, "both"), b = make(world, "b");
    pass_with_the_first(world, 5);
    begin_asking(world, &left, "20260101.1");
    world_pass(world, 1500);
    assert_true(left.done);
    assert_string_equal(left.run, both.id);
    assert_true(is_there(world, "20260101.2"));
    assert_status(world, b.id, RUN_QUEUED);

    struct triggered next = make(world, "both");
    assert_string_equal(ask(world, "20260101.2"), b.id); /* it was only away */
    assert_string_equal(ask(world, "20260101.1"), "");
    assert_string_equal(ask(world, "20260101.2"), next.id);
}

/* All its slots are in use: it requests no run, but polls its runs every 5 s. */
static void busy_session_keeps_its_runs_when_another_ends(void **state)
{
    struct world *world = *state;
    connect_two(world);
    dev_sessions_connect(world->env, SESSION_SOCKET);
    register_version(world, "20260101.3", "c");
    assert_string_equal(ask(world, "20260101.3"), "");
    struct triggered busy = make(world, "b");
    assert_string_equal(ask(world, "20260101.2"), busy.id);
    dev_sessions_disconnect(world->env, SESSION_SOCKET);
    struct triggered both = make(world, "both");
    for (int i = 0; i < 5; i++) {
        pass_with_the_first(world, 5);
        dev_sessions_touch(world->env, run_now(world, busy.id));
    }
    assert_string_equal(ask(world, "20260101.1"), "");
    assert_string_equal(ask(world, "20260101.2"), both.id);
}

static void reconnected_socket_keeps_all_sessions(void **state)
{
    struct world *world = *state;
    connect_two(world);
    dev_sessions_disconnect(world->env, SESSION_SOCKET);
    world_pass(world, 1000);
    dev_sessions_connect(world->env, SESSION_SOCKET);
    struct triggered both = make(world, "both");
    pass_with_the_first(world, 10);
    dev_sessions_disconnect(world->env, SESSION_SOCKET);
    pass_with_the_first(world, 5);
    dev_sessions_connect(world->env, SESSION_SOCKET);
    pass_with_the_first(world, 10);
    assert_string_equal(ask(world, "20260101.2"), both.id);
}

/* ---- runs of a CLI that has left ---- */

static void look(struct world *world, const char *id)
{
    attempt_look(world->engine, world->env, slice_of(id));
}

/* A run that is dequeued and started, and then waits if `waiting`. */
static struct triggered begin_run(struct world *world, bool waiting)
{
    struct triggered got = make(world, "a");
    assert_string_equal(ask(world, "20260101.1"), got.id);
    assert_int_equal(start(world, got.id), OK);
    if (waiting)
        assert_int_equal(wait_for(world, got.id, 3600 * 1000), OK);
    return got;
}

static void polled_run_is_lost_with_its_cli(void **state)
{
    struct world *world = *state;
    register_version(world, "20260101.1", "a");
    for (int waiting = 0; waiting < 2; waiting++) {
        struct triggered got = begin_run(world, waiting);
        world_pass(world, 100000);
        look(world, got.id);
        for (int i = 0; i < 5; i++) {
            world_pass(world, 59000);
            look(world, got.id);
            assert_true(beat(world, got.id));
        }
        world_pass(world, 59000);
        assert_status(world, got.id, waiting ? RUN_WAITING : RUN_EXECUTING);
        world_pass(world, 1000);
        assert_status(world, got.id, RUN_INTERRUPTED);
        assert_non_null(strstr(run_now(world, got.id)->error->data, "STALLED_EXECUTING"));
        assert_non_null(
            strstr(run_now(world, got.id)->error->data, "No heartbeat came for the run"));
    }
    assert_int_equal(world->env->queues.running, 0);
}

/* The CLI was restarted at once with the same code: its session continues. */
static void next_cli_of_a_version_does_not_keep_earlier_runs(void **state)
{
    struct world *world = *state;
    register_version(world, "20260101.1", "a");
    struct triggered old = begin_run(world, false), young;
    look(world, old.id);
    world_pass(world, 30000);
    dev_sessions_renew(world->env);
    young = begin_run(world, false);
    look(world, young.id);
    world_pass(world, 29000);
    look(world, young.id);
    world_pass(world, 1000);
    assert_status(world, old.id, RUN_INTERRUPTED);
    assert_status(world, young.id, RUN_EXECUTING);
}

/* A heartbeat is enough, even if the poll is late; a worker may also never poll. */
static void run_with_heartbeats_is_not_lost_without_polls(void **state)
{
    struct world *world = *state;
    register_version(world, "20260101.1", "a");
    struct triggered beats = begin_run(world, false), silent = begin_run(world, false);
    look(world, beats.id);
    for (int i = 0; i < 5; i++) {
        world_pass(world, 59000);
        assert_true(beat(world, beats.id));
    }
    assert_status(world, beats.id, RUN_EXECUTING);
    assert_status(world, silent.id, RUN_EXECUTING);
    world_pass(world, 6000);
    assert_status(world, silent.id, RUN_INTERRUPTED);
}

static int create_prod_world(void **state)
{
    *state = world_create(&(struct world_options){ .is_prod = true });
    return 0;
}

/* Outside dev, another worker may retry a run: only missing heartbeats show a loss. */
static void polls_outside_dev_do_not_shorten_the_timeout(void **state)
{
    struct world *world = *state;
    register_version(world, "20260101.1", "a");
    struct triggered got = begin_run(world, false);
    look(world, got.id);
    world_pass(world, 290000);
    assert_status(world, got.id, RUN_EXECUTING);
}

/* After the pause of a retry, a worker that does not poll takes the run. */
static void worker_that_takes_a_retry_need_not_poll(void **state)
{
    struct world *world = *state;
    register_version(world, "20260101.1", "a");
    struct triggered got = begin_run(world, false);
    look(world, got.id);
    assert_int_equal(
        break_down(world, got.id, "{\"type\":\"STRING_ERROR\",\"raw\":\"no\"}", 40000), OK);
    assert_status(world, got.id, RUN_RETRYING);
    world_pass(world, 41000);
    assert_string_equal(ask(world, "20260101.1"), got.id);
    assert_int_equal(start(world, got.id), OK);
    world_pass(world, 290000);
    assert_status(world, got.id, RUN_EXECUTING);
}

static void new_runs_are_queued_after_the_last_session_ended(void **state)
{
    struct world *world = *state;
    register_version(world, "20260101.1", "a");
    struct triggered waits = make(world, "b");
    assert_status(world, waits.id, RUN_PENDING_VERSION);
    world_pass(world, 60000);
    assert_null(dev_sessions_next(world->env, NULL));
    struct triggered a = make(world, "a"), b = make(world, "b");
    world_settle(world);
    assert_status(world, a.id, RUN_QUEUED);
    assert_status(world, b.id, RUN_QUEUED);
    assert_status(world, waits.id, RUN_PENDING_VERSION);
    register_version(world, "20260101.2", "c");
    assert_status(world, a.id, RUN_PENDING_VERSION);
    assert_status(world, b.id, RUN_PENDING_VERSION);
}

static void sessions_have_a_minute_to_return_after_a_restart(void **state)
{
    struct world *world = *state;
    register_version(world, "20260101.1", "a");
    struct triggered a = make(world, "a");
    world_restart(world);
    load_worker(world, "20260101.1", "a", 3);
    load_worker(world, "20260101.2", "b", 3);
    dev_sessions_start(world->env);
    assert_string_equal(ask(world, "20260101.2"), "");
    struct triggered later = make(world, "a");
    for (int i = 0; i < 2; i++) {
        world_pass(world, 29000);
        ask(world, "20260101.2");
        assert_status(world, a.id, RUN_QUEUED);
        assert_status(world, later.id, RUN_QUEUED);
    }
    assert_string_equal(ask(world, "20260101.1"), a.id);
    world_pass(world, 40000);
    assert_status(world, later.id, RUN_QUEUED); /* that CLI came back in time */
    ask(world, "20260101.2");
    world_pass(world, 30000);
    assert_status(world, later.id, RUN_PENDING_VERSION);
}

static void newer_limit_of_a_shared_queue_applies(void **state)
{
    struct world *world = *state;
    const char *const versions[] = { "20260101.1", "20260101.2" };
    for (unsigned i = 0; i < 2; i++) {
        load_worker(world, versions[i], "a", 3);
        struct worker *worker = world->env->fleet->workers->all[i];
        worker->queues = mem_new_array(struct queue_limit, 1);
        worker->queues[worker->queue_count++] =
            (struct queue_limit){ .name = bytes_create(SLICE("q")), .limit = 3 + i };
        queues_set_limit(&world->env->queues, SLICE("q"), 3 + i);
    }
    ask(world, versions[0]);
    assert_int_equal(queues_figures(&world->env->queues, SLICE("q")).limit, 3);
    ask(world, versions[1]);
    assert_int_equal(queues_figures(&world->env->queues, SLICE("q")).limit, 4);
    world_pass(world, 59000);
    ask(world, versions[0]);
    world_pass(world, 2000);
    assert_false(is_there(world, versions[1]));
    assert_int_equal(queues_figures(&world->env->queues, SLICE("q")).limit, 3);
}

static void number_of_sessions_is_limited(void **state)
{
    struct world *world = *state;
    char version[24];
    for (unsigned i = 1; i < SESSIONS_MAX + 3; i++) {
        snprintf(version, sizeof(version), "20260101.%u", i);
        register_version(world, version, "a");
        world_pass(world, 1);
        assert_string_equal(ask(world, version), "");
    }
    assert_false(is_there(world, "20260101.1"));
    struct triggered a = make(world, "a");
    assert_string_equal(ask(world, version), a.id);
}

static void run_of_a_leaving_worker_is_unpinned_from_its_version(void **state)
{
    struct world *world = *state;
    struct asking gone;
    register_version(world, "20260101.1", "a");
    struct triggered a = make(world, "a");
    fake_store_set_delay(world->fake, 10, 10);
    begin_asking(world, &gone, "20260101.1");
    dequeue_cancel(&gone.dequeue);
    for (int i = 0; i < 10; i++)
        world_pass(world, 10);
    assert_status(world, a.id, RUN_QUEUED);
    assert_null(run_now(world, a.id)->worker_version);
}

#define session_test(name)                                                                 \
    cmocka_unit_test_setup_teardown(name, create_world, destroy_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        session_test(worker_gets_only_tasks_of_its_version),
        session_test(new_run_goes_to_the_waiting_worker_with_its_task),
        session_test(queue_of_two_sessions_keeps_its_limit_and_blocks_no_session),
        session_test(run_without_a_worker_does_not_block_others),
        session_test(unknown_worker_gets_no_run),
        session_test(two_workers_of_one_version_share_a_session),
        session_test(new_registration_of_a_cli_replaces_its_version),
        session_test(new_registration_replaces_the_session_without_requests),
        session_test(request_with_a_version_restores_its_session),
        session_test(session_ends_after_a_silent_minute),
        session_test(busy_session_lives_while_its_runs_send_heartbeats),
        session_test(shared_task_goes_to_the_remaining_session),
        session_test(busy_session_keeps_its_runs_when_another_ends),
        session_test(reconnected_socket_keeps_all_sessions),
        session_test(polled_run_is_lost_with_its_cli),
        session_test(next_cli_of_a_version_does_not_keep_earlier_runs),
        session_test(run_with_heartbeats_is_not_lost_without_polls),
        session_test(worker_that_takes_a_retry_need_not_poll),
        cmocka_unit_test_setup_teardown(polls_outside_dev_do_not_shorten_the_timeout,
                                        create_prod_world, destroy_world),
        session_test(new_runs_are_queued_after_the_last_session_ended),
        session_test(sessions_have_a_minute_to_return_after_a_restart),
        session_test(newer_limit_of_a_shared_queue_applies),
        session_test(number_of_sessions_is_limited),
        session_test(run_of_a_leaving_worker_is_unpinned_from_its_version),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
