/* Which version of the worker a run gets, and when it waits for one. */
#include "core/fleet/versions.h"

#include "base/mem.h"
#include "core/engine/attempts.h"
#include "core/fleet/waiting.h"
#include "tests/support/world/calls.h"
#include "tests/support/world/unit.h"

static struct world *prod_world(void)
{
    return world_create(&(struct world_options){ .is_prod = true });
}

static int64_t revision(struct world *world, const char *id)
{
    return run_now(world, id)->version;
}

/* null: the run had no limits, and its trigger named none. An object: its gates are decided. */
static void run_takes_what_its_trigger_left_open(void **state)
{
    static const struct {
        const char *run, *task;
        bool has_inline;
        const char *result; /* NULL: as before */
    } cases[] = {
        { NULL, NULL, false, NULL },
        { NULL, "[\"l\"]", false, "[\"l\"]" },
        { NULL, "[null,{\"queue\":\"q\"}]", false, "[null,{\"queue\":\"q\"}]" },
        { "[]", "[\"l\"]", false, NULL },
        { "[]", "[\"task/a\",\"l\"]", true, "[\"task/a\"]" },
        { "[\"m\"]", "[\"task/a\",\"l\",{\"queue\":\"q\",\"pin\":\"/\"}]", true,
          "[\"task/a\",\"m\",{\"queue\":\"q\",\"pin\":\"/\"}]" },
        { "[null,{}]", "[\"l\",{\"queue\":\"q\"}]", false, "[\"l\",{}]" },
        { "[null,{\"queue\":\"task/b\"}]", "[\"task/a\"]", true,
          "[\"task/a\",{\"queue\":\"task/b\"}]" },
        { "[{}]", "[\"l\",{\"queue\":\"q\"}]", false, NULL },
        { "[{\"queue\":\"task/b\"}]", "[\"task/a\",\"l\"]", true,
          "[\"task/a\",{\"queue\":\"task/b\"}]" },
        { "[\"task/a\",{\"queue\":\"r\"}]", "[\"task/a\",\"l\",{\"queue\":\"q\"}]", true,
          NULL },
        { "[\"m\"]", "[null,{\"queue\":\"q\"}]", false, "[\"m\",{\"queue\":\"q\"}]" },
        { "[null,{\"queue\":\"r\"}]", "[null,{\"queue\":\"q\"}]", false, NULL },
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct run run = { 0 };
        struct worker_task task = { .has_inline = cases[i].has_inline };
        const char *expected = cases[i].result ? cases[i].result : cases[i].run;
        if (cases[i].run)
            run_rare_edit(&run)->limits = bytes_create(slice_of(cases[i].run));
        if (cases[i].task)
            task.limits = bytes_create(slice_of(cases[i].task));
        assert_int_equal(versions_has_limits_for(&run, &task), cases[i].result != NULL);
        versions_take_limits(&run, &task);
        const struct bytes *got = run_rare(&run)->limits;
        if (!expected != !got || (got && strcmp(got->data, expected)))
            fail_msg("case %zu: %s", i, got ? got->data : "none");
        assert_false(versions_has_limits_for(&run, &task));
        run_finish(&run);
        bytes_unref(task.limits);
    }
    bytes_forget_shared();
}

static void run_without_any_version_waits_at_once(void **state)
{
    struct world *world = prod_world();
    (void)state;
    struct triggered got = trigger(world, (struct wish){ .ttl = "1h" });
    const struct run *run = run_now(world, got.id);
    assert_status(world, got.id, RUN_PENDING_VERSION);
    assert_int_equal(run->version, 1);
    assert_int_equal(run->queued_at, loop_wall_ms(world->loop));
    assert_int_equal(run->due_at, loop_wall_ms(world->loop) + 3600000);
    assert_int_equal(versions_check(world->env, run), VERSION_NONE);
    assert_int_equal(world->env->queues.waiting, 0);
    register_worker(world, "20260101.1", "other", 3);
    world_settle(world);
    assert_status(world, got.id, RUN_PENDING_VERSION);
    assert_int_equal(revision(world, got.id), 1);
    assert_int_equal(versions_check(world->env, run_now(world, got.id)),
                     VERSION_LACKS_TASK);
    register_worker(world, "20260101.2", "hello", 3);
    world_settle(world);
    assert_status(world, got.id, RUN_QUEUED);
    assert_string_equal(dequeue(world), got.id);
    world_destroy(world);
}

static void task_missing_in_the_current_version_waits(void **state)
{
    struct world *world = prod_world();
    (void)state;
    register_worker(world, "20260101.1", "hello", 3);
    register_worker(world, "20260101.2", "other", 3);
    struct triggered any = trigger(world, (struct wish){ 0 });
    struct triggered locked = trigger(world, (struct wish){ .version = "20260101.1" });
    struct triggered gone = trigger(world, (struct wish){ .version = "20250101.1" });
    assert_status(world, any.id, RUN_PENDING_VERSION);
    assert_status(world, locked.id, RUN_QUEUED);
    assert_status(world, gone.id, RUN_PENDING_VERSION);
    assert_int_equal(versions_check(world->env, run_now(world, gone.id)), VERSION_NONE);
    assert_string_equal(dequeue(world), locked.id);
    world_destroy(world);
}

static void queued_run_waits_if_the_next_version_lacks_its_task(void **state)
{
    struct world *world = prod_world();
    (void)state;
    register_worker(world, "20260101.1", "hello,other", 3);
    struct triggered one = trigger(world, (struct wish){ 0 });
    struct triggered two = trigger(world, (struct wish){ .task = "other" });
    register_worker(world, "20260101.2", "other", 3);
    world_settle(world);
    assert_status(world, one.id, RUN_PENDING_VERSION);
    assert_status(world, two.id, RUN_QUEUED);
    assert_int_equal(world->env->queues.waiting, 1);
    register_worker(world, "20260101.3", "hello", 3);
    world_settle(world);
    assert_status(world, one.id, RUN_QUEUED);
    assert_status(world, two.id, RUN_PENDING_VERSION);
    world_destroy(world);
}

static void version_of_a_delayed_run_is_checked_when_due(void **state)
{
    struct world *world = prod_world();
    (void)state;
    struct wish wish = { .delay_ms = 5000, .ttl = "10s" };
    struct triggered late = trigger(world, wish), early = trigger(world, wish);
    assert_status(world, late.id, RUN_DELAYED);
    world_pass(world, 5000);
    assert_status(world, late.id, RUN_PENDING_VERSION);
    assert_int_equal(run_now(world, late.id)->queued_at, loop_wall_ms(world->loop));
    assert_int_equal(run_now(world, late.id)->snapshot, 2);
    register_worker(world, "20260101.1", "hello", 3);
    world_settle(world);
    assert_string_equal(dequeue(world), late.id);
    register_worker(world, "20260101.2", "other", 3);
    world_settle(world);
    assert_status(world, early.id, RUN_PENDING_VERSION);
    world_pass(world, 10000);
    assert_status(world, early.id, RUN_EXPIRED);
    world_destroy(world);
}

/* The trigger was decided before the version was registered, and stored after that. */
static void version_registered_during_the_trigger_is_noticed(void **state)
{
    struct world *world = prod_world();
    struct triggering triggering = { 0 };
    struct wish wish = { 0 };
    (void)state;
    fake_store_set_delay(world->fake, 20, 0);
    assert_int_equal(trigger_all(world, &triggering, &wish, 1), OK);
    loop_turn(world->loop, 1);
    register_worker(world, "20260101.1", "hello", 3);
    triggering_wait(world, &triggering);
    assert_status(world, triggering.items[0].id, RUN_PENDING_VERSION);
    world_pass(world, 100);
    assert_status(world, triggering.items[0].id, RUN_QUEUED);
    triggering_finish(&triggering);
    world_destroy(world);
}

static void restart_checks_versions_of_loaded_runs(void **state)
{
    struct world *world = prod_world();
    (void)state;
    register_worker(world, "20260101.1", "hello", 3);
    struct triggered queued = trigger(world, (struct wish){ 0 });
    struct triggered waits = trigger(world, (struct wish){ .task = "other" });
    world_restart(world);
    world_settle(world);
    assert_status(world, queued.id, RUN_PENDING_VERSION); /* no version is registered */
    assert_status(world, waits.id, RUN_PENDING_VERSION);
    register_worker(world, "20260101.1", "hello,other", 3);
    world_settle(world);
    assert_status(world, queued.id, RUN_QUEUED);
    assert_status(world, waits.id, RUN_QUEUED);
    world_destroy(world);
}

static void in_dev_a_run_stays_queued_until_a_worker_requests_it(void **state)
{
    struct world *world = world_create(NULL);
    (void)state;
    struct triggered got = trigger(world, (struct wish){ 0 });
    struct triggered late = trigger(world, (struct wish){ .delay_ms = 10 });
    world_pass(world, 10);
    assert_status(world, got.id, RUN_QUEUED);
    assert_status(world, late.id, RUN_QUEUED);
    assert_int_equal(versions_check(world->env, run_now(world, got.id)), VERSION_UNDECIDED);
    world_destroy(world);
}

/* Forgets a version, as happens to the oldest when there are too many. */
static void forget_version(struct world *world, const char *version)
{
    struct workers *workers = world->env->fleet->workers;
    size_t at = 0;
    while (strcmp(workers->all[at]->version, version))
        at++;
    workers->all[at]->version[0] = 'x';
}

/* Nothing changes the run by itself: its timer does not fire in every turn. */
static void assert_rests(struct world *world, const char *id)
{
    int64_t changes = revision(world, id);
    world_settle(world);
    assert_int_equal(revision(world, id), changes);
    assert_false(environment_find(world->env, slice_of(id))->timer.place);
    assert_false(loop_turn(world->loop, 0));
}

static void retry_waits_for_its_missing_version(void **state)
{
    struct world *world = prod_world();
    (void)state;
    register_worker(world, "20260101.1", "hello", 3);
    register_worker(world, "20260101.2", "hello", 3);
    struct triggered got = trigger(world, (struct wish){ .version = "20260101.1" });
    execute(world, got.id);
    assert_int_equal(break_down(world, got.id, "{\"type\":\"STRING_ERROR\"}", 60000), OK);
    assert_status(world, got.id, RUN_RETRYING);
    world_settle(world);
    forget_version(world, "20260101.1");
    world_pass(world, 60000);
    assert_string_equal(dequeue(world), "");
    assert_status(world, got.id, RUN_PENDING_VERSION);
    assert_rests(world, got.id);
    register_worker(world, "20260101.1", "hello", 3);
    world_settle(world);
    assert_string_equal(dequeue(world), got.id);
    assert_int_equal(start(world, got.id), OK);
    assert_int_equal(run_now(world, got.id)->attempt, 2);
    world_destroy(world);
}

static void returned_run_rests_while_its_version_is_missing(void **state)
{
    struct world *world = prod_world();
    (void)state;
    register_worker(world, "20260101.1", "hello", 3);
    register_worker(world, "20260101.2", "hello", 3);
    struct triggered got = trigger(world, (struct wish){ .version = "20260101.1" });
    assert_string_equal(dequeue(world), got.id);
    world_pass(world, 60000); /* its lease expires, a pause begins */
    world_pass(world, 3000);
    assert_status(world, got.id, RUN_QUEUED);
    forget_version(world, "20260101.1");
    assert_string_equal(dequeue(world), "");
    assert_status(world, got.id, RUN_PENDING_VERSION);
    assert_rests(world, got.id);
    world_destroy(world);
}

/* ---- deployments by their external ids ---- */

static void assert_version(struct world *world, const char *id, const char *version)
{
    const struct bytes *has = run_now(world, id)->worker_version;
    assert_string_equal(has ? has->data : "", version);
}

static void assert_waits_for(struct world *world, const char *id, const char *words)
{
    const struct tracked *run = environment_find(world->env, slice_of(id));
    struct waiting waiting;
    struct buf text = { 0 };
    waiting_look(run, NULL, &waiting);
    assert_int_equal(waiting.reason, WAITING_VERSION);
    waiting_explain(run, &waiting, &text);
    buf_add_char(&text, '\0');
    if (!strstr(text.ptr, words))
        fail_msg("%s", text.ptr);
    buf_finish(&text);
}

static void run_that_names_a_deployment_waits_only_for_it(void **state)
{
    struct world *world = prod_world();
    (void)state;
    register_worker(world, "20260101.1", "hello", 3);
    struct triggered got = trigger(world, (struct wish){ .external = "ci-1" });
    struct triggered other = trigger(world, (struct wish){ .external = "ci-2" });
    struct triggered plain = trigger(world, (struct wish){ 0 });
    assert_status(world, got.id, RUN_PENDING_VERSION);
    assert_status(world, plain.id, RUN_QUEUED);
    assert_waits_for(world, got.id, "No version is deployed with the external id ci-1");
    struct worker *worker = add_deployment(world, "20260101.2", "hello", "ci-1");
    world_settle(world);
    assert_status(world, got.id, RUN_PENDING_VERSION); /* still being built */
    versions_deployed(world->env, worker);
    world_settle(world);
    assert_status(world, got.id, RUN_QUEUED);
    assert_version(world, got.id, "20260101.2");
    assert_version(world, plain.id, "");
    assert_status(world, other.id, RUN_PENDING_VERSION);
    assert_string_equal(workers_current(world->env->fleet->workers)->version, "20260101.1");
    world_destroy(world);
}

static void run_is_pinned_to_the_highest_version_of_its_deployment(void **state)
{
    struct world *world = prod_world();
    (void)state;
    versions_deployed(world->env, add_deployment(world, "20260101.10", "hello", "ci"));
    versions_deployed(world->env, add_deployment(world, "20260101.9", "hello", "ci"));
    struct triggered got = trigger(world, (struct wish){ .external = "ci" });
    struct triggered late =
        trigger(world, (struct wish){ .external = "ci", .delay_ms = 5000 });
    struct triggered locked =
        trigger(world, (struct wish){ .external = "ci", .version = "20260101.9" });
    versions_deployed(world->env, add_deployment(world, "20260101.11", "hello", "ci"));
    world_pass(world, 5000);
    assert_status(world, got.id, RUN_QUEUED);
    assert_version(world, got.id, "20260101.10");
    assert_status(world, late.id, RUN_QUEUED);
    assert_version(world, late.id, "20260101.10");
    assert_version(world, locked.id, "20260101.9");
    world_destroy(world);
}

static void a_deployment_without_the_task_releases_nothing(void **state)
{
    struct world *world = prod_world();
    (void)state;
    versions_deployed(world->env, add_deployment(world, "20260101.1", "other", "ci"));
    struct triggered got = trigger(world, (struct wish){ .external = "ci" });
    assert_status(world, got.id, RUN_PENDING_VERSION);
    assert_version(world, got.id, "");
    assert_waits_for(world, got.id,
                     "deployed with the external id ci does not have its task");
    versions_deployed(world->env, add_deployment(world, "20260101.2", "hello", "ci"));
    world_settle(world);
    assert_status(world, got.id, RUN_QUEUED);
    assert_version(world, got.id, "20260101.2");
    world_destroy(world);
}

static void delayed_run_waits_for_its_deployment_when_due(void **state)
{
    struct world *world = prod_world();
    (void)state;
    struct triggered early =
        trigger(world, (struct wish){ .external = "a", .delay_ms = 5000 });
    struct triggered late =
        trigger(world, (struct wish){ .external = "b", .delay_ms = 5000, .ttl = "10s" });
    versions_deployed(world->env, add_deployment(world, "20260101.1", "hello", "a"));
    world_pass(world, 5000);
    assert_status(world, early.id, RUN_QUEUED);
    assert_version(world, early.id, "20260101.1");
    assert_status(world, late.id, RUN_PENDING_VERSION);
    world_pass(world, 10000);
    assert_status(world, late.id, RUN_EXPIRED);
    world_destroy(world);
}

/* The run stores what it waits for: nothing else knows that after a restart. */
static void wait_for_a_deployment_survives_a_restart(void **state)
{
    struct world *world = prod_world();
    (void)state;
    struct triggered got = trigger(world, (struct wish){ .external = "ci" });
    world_restart(world);
    register_worker(world, "20260101.1", "hello", 3);
    world_settle(world);
    assert_status(world, got.id, RUN_PENDING_VERSION);
    versions_deployed(world->env, add_deployment(world, "20260101.2", "hello", "ci"));
    world_settle(world);
    assert_string_equal(dequeue(world), got.id);
    assert_version(world, got.id, "20260101.2");
    world_destroy(world);
}

static void returned_lease_stays_with_its_deployment(void **state)
{
    struct world *world = prod_world();
    (void)state;
    register_worker(world, "20260101.1", "hello", 3);
    versions_deployed(world->env, add_deployment(world, "20260101.2", "hello", "ci"));
    struct triggered got = trigger(world, (struct wish){ .external = "ci" });
    assert_string_equal(dequeue(world), got.id);
    dequeue_give_back(world->engine, world->env, slice_of(got.id),
                      run_now(world, got.id)->snapshot, false);
    world_settle(world);
    assert_status(world, got.id, RUN_QUEUED);
    assert_version(world, got.id, "20260101.2");
    world_destroy(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(run_takes_what_its_trigger_left_open),
        cmocka_unit_test(run_without_any_version_waits_at_once),
        cmocka_unit_test(task_missing_in_the_current_version_waits),
        cmocka_unit_test(queued_run_waits_if_the_next_version_lacks_its_task),
        cmocka_unit_test(version_of_a_delayed_run_is_checked_when_due),
        cmocka_unit_test(version_registered_during_the_trigger_is_noticed),
        cmocka_unit_test(restart_checks_versions_of_loaded_runs),
        cmocka_unit_test(in_dev_a_run_stays_queued_until_a_worker_requests_it),
        cmocka_unit_test(retry_waits_for_its_missing_version),
        cmocka_unit_test(returned_run_rests_while_its_version_is_missing),
        cmocka_unit_test(run_that_names_a_deployment_waits_only_for_it),
        cmocka_unit_test(run_is_pinned_to_the_highest_version_of_its_deployment),
        cmocka_unit_test(a_deployment_without_the_task_releases_nothing),
        cmocka_unit_test(delayed_run_waits_for_its_deployment_when_due),
        cmocka_unit_test(wait_for_a_deployment_survives_a_restart),
        cmocka_unit_test(returned_lease_stays_with_its_deployment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
