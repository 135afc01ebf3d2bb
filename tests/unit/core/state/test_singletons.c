/* Singleton queues: which run holds a key, and what a trigger does about it. */
#include "tests/support/world/unit.h"

#include <stdio.h>

#include "base/metrics.h"
#include "core/engine/calls.h"
#include "tests/support/world/calls.h"

enum { AT_ONCE = 50, MANY = 2000 };

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

static void configure(struct world *world, const char *queue, enum singleton strategy)
{
    struct queue_settings settings = { .singleton = strategy, .version = 1 };
    engine_configure_queue(world->env, slice_of(queue), &settings);
}

static struct world *with(void **state, enum singleton strategy)
{
    struct world *world = *state;
    register_worker(world, "1", "hello,b", 3);
    configure(world, "task/hello", strategy);
    return world;
}

static size_t stored(const struct world *world)
{
    return fake_store_count(world->fake, WORLD_ENV);
}

static size_t unfinished(const struct world *world)
{
    return world->env->unfinished;
}

static const struct wish keyed = { .concurrency_key = "k" };

/* ---- skip ---- */

static void a_skipped_trigger_leads_to_the_run_that_has_its_key(void **state)
{
    struct world *world = with(state, SINGLETON_SKIP);
    struct triggered first = trigger(world, keyed);
    int64_t triggers = metrics[M_TRIGGERS];
    assert_false(first.joined);
    struct triggered second = trigger(world, keyed);
    assert_string_equal(second.id, first.id);
    assert_true(second.joined);
    assert_int_equal(run_now(world, first.id)->version, 1);
    assert_int_equal(metrics[M_TRIGGERS], triggers);
    assert_false(trigger(world, (struct wish){ .concurrency_key = "l" }).joined);
    assert_false(
        trigger(world, (struct wish){ .concurrency_key = "k", .task = "b" }).joined);
    struct triggered plain = trigger(world, (struct wish){ 0 });
    assert_false(plain.joined);
    assert_string_equal(trigger(world, (struct wish){ 0 }).id, plain.id);
    assert_int_equal(stored(world), 4);
}

/* A run holds its key from its creation to its end: delayed, executing, waiting, between
 * attempts. */
static void a_key_is_held_until_its_run_has_ended(void **state)
{
    struct world *world = with(state, SINGLETON_SKIP);
    struct wish late = keyed;
    late.delay_ms = 1000;
    struct triggered first = trigger(world, late);
    assert_string_equal(trigger(world, keyed).id, first.id);
    world_pass(world, 1000);
    execute(world, first.id);
    assert_string_equal(trigger(world, keyed).id, first.id);
    assert_int_equal(wait_for(world, first.id, 5000), OK);
    assert_string_equal(trigger(world, keyed).id, first.id);
    world_pass(world, 5000);
    assert_int_equal(break_down(world, first.id, "{}", 60000), OK);
    assert_string_equal(trigger(world, keyed).id, first.id);
    world_pass(world, 60000);
    execute(world, first.id);
    assert_int_equal(succeed(world, first.id, "1"), OK);
    assert_false(trigger(world, keyed).joined);
}

static void among_several_runs_the_one_that_has_begun_holds_the_key(void **state)
{
    struct world *world = with(state, SINGLETON_QUEUE);
    struct wish second_to_start = keyed;
    second_to_start.delay_ms = 1000;
    struct triggered delayed = trigger(world, second_to_start);
    struct triggered begun = trigger(world, keyed);
    execute(world, begun.id);
    configure(world, "task/hello", SINGLETON_SKIP);
    assert_string_equal(trigger(world, keyed).id, begun.id);
    assert_int_equal(succeed(world, begun.id, "1"), OK);
    assert_string_equal(trigger(world, keyed).id, delayed.id);
}

static void begin_all(struct world *world, struct triggering *all, size_t count,
                      const struct wish *wish)
{
    for (size_t i = 0; i < count; i++)
        assert_int_equal(trigger_all(world, &all[i], wish, 1), OK);
}

static size_t finish_all(struct world *world, struct triggering *all, size_t count)
{
    size_t made = 0;
    for (size_t i = 0; i < count; i++) {
        triggering_wait(world, &all[i]);
        if (!all[i].status) {
            made += !all[i].items[0].joined;
            assert_non_null(run_now(world, all[i].items[0].id));
        }
        triggering_finish(&all[i]);
        all[i] = (struct triggering){ 0 };
    }
    return made;
}

static void skipped_triggers_at_the_same_time_make_one_run(void **state)
{
    static struct triggering all[AT_ONCE];
    struct world *world = with(state, SINGLETON_SKIP);
    fake_store_set_delay(world->fake, 10, 10);
    begin_all(world, all, AT_ONCE, &keyed);
    assert_int_equal(finish_all(world, all, AT_ONCE), 1);
    assert_int_equal(stored(world), 1);
}

static void a_failed_trigger_leaves_the_key_to_the_next(void **state)
{
    static struct triggering all[3];
    struct world *world = with(state, SINGLETON_SKIP);
    fake_store_set_delay(world->fake, 10, 10);
    *fake_store_fault(world->fake) = (struct fault){ .countdown = 1 };
    begin_all(world, all, 3, &keyed);
    assert_int_equal(finish_all(world, all, 3), 1);
    assert_int_equal(stored(world), 1);
}

static void a_run_that_ends_in_the_same_turn_is_replaced(void **state)
{
    static const enum singleton strategies[] = { SINGLETON_SKIP, SINGLETON_CANCEL };
    struct world *world = with(state, SINGLETON_SKIP);
    for (int i = 0; i < 2; i++) {
        struct triggering next = { 0 };
        configure(world, "task/hello", strategies[i]);
        struct triggered first = trigger(world, keyed);
        run_cancel_alone(world->engine, world->env, slice_of(first.id));
        assert_int_equal(trigger_all(world, &next, &keyed, 1), OK);
        triggering_wait(world, &next);
        assert_false(next.items[0].joined);
        assert_status(world, first.id, RUN_CANCELED);
        assert_int_equal(unfinished(world), 1);
        triggering_finish(&next);
    }
}

/* ---- cancel ---- */

static void a_trigger_cancels_the_run_that_has_not_begun_in_its_commit(void **state)
{
    struct world *world = with(state, SINGLETON_CANCEL);
    struct triggered first = trigger(world, keyed);
    uint64_t applied = world->env->applied;
    struct triggered second = trigger(world, keyed);
    assert_false(second.joined);
    assert_string_not_equal(second.id, first.id);
    assert_status(world, first.id, RUN_CANCELED);
    assert_non_null(strstr(run_now(world, first.id)->error->data, "newer run"));
    assert_status(world, second.id, RUN_QUEUED);
    assert_int_equal(world->env->applied, applied + 2);
    *fake_store_fault(world->fake) = (struct fault){ .countdown = 1 };
    assert_int_equal(trigger_status(world, keyed), ERR_STORE);
    assert_status(world, second.id, RUN_QUEUED);
}

/* The run that executes is canceled only if no other waits; its slot is free once its worker
 * has confirmed, also after a restart. */
static void a_new_run_starts_after_the_canceled_one_has_ended(void **state)
{
    struct world *world = with(state, SINGLETON_CANCEL);
    struct triggered first = trigger(world, keyed);
    execute(world, first.id);
    struct triggered second = trigger(world, keyed);
    assert_int_equal(run_now(world, first.id)->execution, EXECUTION_PENDING_CANCEL);
    assert_string_equal(dequeue(world), "");
    struct triggered third = trigger(world, keyed);
    assert_status(world, second.id, RUN_CANCELED);
    world_restart(world);
    register_worker(world, "1", "hello", 3);
    configure(world, "task/hello", SINGLETON_CANCEL);
    assert_string_equal(dequeue(world), "");
    assert_int_equal(succeed(world, first.id, "1"), OK);
    assert_int_equal(run_now(world, first.id)->execution, EXECUTION_FINISHED);
    assert_string_equal(dequeue(world), third.id);
}

static void a_run_that_executes_stays_if_an_older_one_waits(void **state)
{
    struct world *world = with(state, SINGLETON_QUEUE);
    struct triggered first = trigger(world, keyed), second = trigger(world, keyed);
    execute(world, first.id);
    configure(world, "task/hello", SINGLETON_CANCEL);
    struct triggered third = trigger(world, keyed);
    assert_status(world, first.id, RUN_EXECUTING);
    assert_status(world, second.id, RUN_CANCELED);
    assert_string_equal(dequeue(world), "");
    assert_int_equal(succeed(world, first.id, "1"), OK);
    assert_string_equal(dequeue(world), third.id);
}

static void on_leased(struct dequeue *dequeue, enum err status)
{
    (void)dequeue;
    assert_int_equal(status, OK);
}

/* The trigger chooses the older of two runs, which a worker takes in a commit that is in
 * flight. */
static void a_run_that_begins_meanwhile_is_not_canceled_if_another_waits(void **state)
{
    struct world *world = with(state, SINGLETON_QUEUE);
    struct triggered first = trigger(world, keyed), second = trigger(world, keyed);
    struct triggering call = { 0 };
    struct dequeue lease;
    configure(world, "task/hello", SINGLETON_CANCEL);
    fake_store_set_delay(world->fake, 10, 10);
    assert_int_equal(
        dequeue_begin(world->engine, &world->env, 1, &any_run, &lease, 1000, on_leased),
        OK);
    while (!environment_find(world->env, slice_of(first.id))->in_flight)
        loop_turn(world->loop, 0);
    assert_int_equal(trigger_all(world, &call, &keyed, 1), OK);
    triggering_wait(world, &call);
    assert_int_equal(call.status, OK);
    assert_status(world, first.id, RUN_DEQUEUED);
    assert_status(world, second.id, RUN_CANCELED);
    assert_status(world, call.items[0].id, RUN_QUEUED);
    triggering_finish(&call);
}

static void of_triggers_at_the_same_time_one_run_is_left(void **state)
{
    static struct triggering all[AT_ONCE];
    struct world *world = with(state, SINGLETON_CANCEL);
    fake_store_set_delay(world->fake, 10, 10);
    begin_all(world, all, AT_ONCE, &keyed);
    assert_int_equal(finish_all(world, all, AT_ONCE), AT_ONCE);
    assert_int_equal(stored(world), AT_ONCE);
    assert_int_equal(unfinished(world), 1);
}

/* ---- queue ---- */

static void runs_of_a_key_execute_one_after_the_other(void **state)
{
    struct world *world = with(state, SINGLETON_QUEUE);
    struct triggered first = trigger(world, keyed), second = trigger(world, keyed);
    struct triggered other = trigger(world, (struct wish){ .concurrency_key = "l" });
    assert_false(second.joined);
    execute(world, first.id);
    execute(world, other.id);
    assert_string_equal(dequeue(world), "");
    assert_int_equal(succeed(world, first.id, "1"), OK);
    assert_string_equal(dequeue(world), second.id);
}

/* ---- settings ---- */

static void runs_from_before_the_setting_hold_their_keys(void **state)
{
    struct world *world = with(state, SINGLETON_NONE);
    struct triggered first = { 0 };
    char key[8];
    for (int i = 0; i < MANY; i++) {
        snprintf(key, sizeof(key), "k%d", i);
        first = trigger(world, (struct wish){ .concurrency_key = key });
    }
    struct triggering call = { 0 };
    struct wish last = { .concurrency_key = key };
    loop_set_budget(world->loop, 0); /* the index takes several turns */
    configure(world, "task/hello", SINGLETON_SKIP);
    assert_int_equal(trigger_all(world, &call, &last, 1), OK);
    triggering_wait(world, &call);
    assert_string_equal(call.items[0].id, first.id);
    triggering_finish(&call);
}

static void keys_survive_a_restart(void **state)
{
    struct world *world = with(state, SINGLETON_SKIP);
    struct triggered first = trigger(world, keyed);
    execute(world, first.id);
    world_restart(world);
    configure(world, "task/hello", SINGLETON_SKIP);
    assert_string_equal(trigger(world, keyed).id, first.id);
}

static size_t turns_until_freed(struct world *world)
{
    size_t turns = 0;
    for (; !list_empty(&engine_share_of(world->env)->singleton_rests); turns++)
        loop_turn(world->loop, 0);
    return turns;
}

/* So a setting of a queue with many runs delays nothing else for long. */
static void keys_are_freed_in_parts_when_the_strategy_is_removed(void **state)
{
    struct world *world = with(state, SINGLETON_SKIP);
    struct triggered last = { 0 };
    char key[8];
    for (int i = 0; i < MANY; i++) {
        snprintf(key, sizeof(key), "k%d", i);
        last = trigger(world, (struct wish){ .concurrency_key = key });
    }
    loop_set_budget(world->loop, 0);
    configure(world, "task/hello", SINGLETON_NONE);
    loop_turn(world->loop, 0);
    configure(world, "task/hello", SINGLETON_SKIP); /* while keys are freed */
    assert_string_equal(trigger(world, (struct wish){ .concurrency_key = key }).id,
                        last.id);
    turns_until_freed(world);
    configure(world, "task/hello", SINGLETON_NONE);
    assert_true(turns_until_freed(world) > 4);
    assert_false(trigger(world, (struct wish){ .concurrency_key = key }).joined);
    configure(world, "task/hello", SINGLETON_SKIP);
    configure(world, "task/hello", SINGLETON_NONE); /* the world ends meanwhile */
}

static void triggers_that_wait_continue_when_the_strategy_is_removed(void **state)
{
    static struct triggering all[AT_ONCE];
    struct world *world = with(state, SINGLETON_SKIP);
    fake_store_set_delay(world->fake, 10, 10);
    begin_all(world, all, AT_ONCE, &keyed);
    configure(world, "task/hello", SINGLETON_NONE);
    assert_int_equal(finish_all(world, all, AT_ONCE), AT_ONCE);
    configure(world, "task/hello", SINGLETON_SKIP);
    assert_true(trigger(world, keyed).joined);
    configure(world, "task/hello", SINGLETON_NONE);
    assert_int_equal(engine_share_of(world->env)->singletons.count, 0);
}

/* ---- claims and options ---- */

static void a_repeated_request_gets_the_first_answer(void **state)
{
    struct world *world = with(state, SINGLETON_SKIP);
    struct triggered first = trigger(world, keyed);
    for (int i = 0; i < 3; i++) {
        struct triggering call = { .op.request_key = bytes_create(SLICE("r")) };
        assert_int_equal(trigger_all(world, &call, &keyed, 1), OK);
        triggering_wait(world, &call);
        assert_int_equal(call.status, OK);
        assert_int_equal(call.op.repeated, i > 0);
        assert_string_equal(call.items[0].id, first.id);
        assert_true(call.items[0].joined); /* also when its run has ended */
        triggering_finish(&call);
        if (i == 1)
            assert_int_equal(cancel(world, first.id), OK);
    }
    assert_int_equal(unfinished(world), 0);
}

static void a_repeated_request_cancels_once(void **state)
{
    struct world *world = with(state, SINGLETON_CANCEL);
    char id[ID_MAX];
    trigger(world, keyed);
    for (int i = 0; i < 2; i++) {
        struct triggering call = { .op.request_key = bytes_create(SLICE("r")) };
        assert_int_equal(trigger_all(world, &call, &keyed, 1), OK);
        triggering_wait(world, &call);
        assert_int_equal(call.op.repeated, i);
        if (i)
            assert_string_equal(call.items[0].id, id);
        assert_false(call.items[0].joined);
        memcpy(id, call.items[0].id, sizeof(id));
        triggering_finish(&call);
    }
    assert_status(world, id, RUN_QUEUED);
    assert_int_equal(stored(world), 2);
}

static void an_idempotency_key_comes_first(void **state)
{
    struct world *world = with(state, SINGLETON_CANCEL);
    struct wish both = { .concurrency_key = "k", .key = "i" };
    struct triggered first = trigger(world, both);
    assert_true(trigger(world, both).cached);
    assert_status(world, first.id, RUN_QUEUED);
    configure(world, "task/hello", SINGLETON_SKIP);
    struct wish other = { .concurrency_key = "k", .key = "j" };
    assert_true(trigger(world, other).joined);
    execute(world, first.id);
    assert_int_equal(succeed(world, first.id, "1"), OK);
    struct triggered again = trigger(world, other);
    assert_true(again.cached);
    assert_string_equal(again.id, first.id);
}

static void debounce_is_refused_where_a_holder_is_needed(void **state)
{
    struct world *world = with(state, SINGLETON_SKIP);
    struct triggering call = { 0 };
    struct wish wish = { .debounce = "d", .concurrency_key = "k" };
    assert_int_equal(trigger_all(world, &call, &wish, 1), ERR_INVALID);
    assert_non_null(strstr(call.op.why.text, "singleton"));
    triggering_finish(&call);
    configure(world, "task/hello", SINGLETON_QUEUE);
    assert_false(trigger(world, wish).joined);
}

/* A run that waited for itself would never end, and one that canceled its parent would be
 * canceled with it. */
static void a_descendant_of_the_holder_is_refused(void **state)
{
    struct world *world = with(state, SINGLETON_CANCEL);
    struct triggered parent = trigger(world, keyed);
    execute(world, parent.id);
    struct wish child = { .concurrency_key = "k", .parent = parent.id };
    assert_int_equal(trigger_status(world, child), ERR_RULE);
    assert_status(world, parent.id, RUN_EXECUTING);
    configure(world, "task/hello", SINGLETON_SKIP);
    assert_string_equal(trigger(world, child).id, parent.id);
    struct triggered between =
        trigger(world, (struct wish){ .task = "b", .parent = parent.id });
    struct triggering call = { 0 };
    struct wish grandchild = { .concurrency_key = "k", .parent = between.id };
    call.items[0].run.resume_parent = true;
    assert_int_equal(trigger_all(world, &call, &grandchild, 1), OK);
    call.items[0].run.resume_parent = true;
    triggering_wait(world, &call);
    assert_int_equal(call.status, ERR_RULE);
    assert_non_null(strstr(call.op.why.text, "concurrencyKey"));
    triggering_finish(&call);
}

/* ---- batches ---- */

static void begin_batch(struct world *world, struct triggering *call,
                        const struct wish *wishes, size_t count)
{
    *call = (struct triggering){ 0 };
    call->batch = (struct document){ .kind = DOC_BATCH,
                                     .name = bytes_create(SLICE("batch_1")),
                                     .body = bytes_create(SLICE("{}")) };
    call->op.batch = &call->batch;
    snprintf(call->op.batch_id, sizeof(call->op.batch_id), "batch_1");
    assert_int_equal(trigger_all(world, call, wishes, count), OK);
    triggering_wait(world, call);
    assert_int_equal(call->status, OK);
}

static void items_of_a_batch_are_skipped_one_after_the_other(void **state)
{
    struct world *world = with(state, SINGLETON_SKIP);
    struct triggering call;
    struct triggered held = trigger(world, keyed);
    struct wish l = { .concurrency_key = "l" };
    begin_batch(world, &call, (struct wish[]){ l, keyed, l, keyed, { .task = "b" } }, 5);
    static const bool joined[] = { false, true, true, true, false };
    for (int i = 0; i < 5; i++)
        assert_int_equal(call.items[i].joined, joined[i]);
    assert_string_equal(call.items[1].id, held.id);
    assert_string_equal(call.items[3].id, held.id);
    assert_string_equal(call.items[2].id, call.items[0].id);
    assert_int_equal(stored(world), 3);
    triggering_finish(&call);
}

static void items_of_a_batch_cancel_one_after_the_other(void **state)
{
    struct world *world = with(state, SINGLETON_CANCEL);
    struct triggering call;
    struct triggered held = trigger(world, keyed);
    uint64_t applied = world->env->applied;
    struct wish l = { .concurrency_key = "l" };
    begin_batch(world, &call, (struct wish[]){ l, keyed, l, keyed, keyed }, 5);
    static const enum run_status status[] = { RUN_CANCELED, RUN_CANCELED, RUN_QUEUED,
                                              RUN_CANCELED, RUN_QUEUED };
    for (int i = 0; i < 5; i++) {
        assert_status(world, call.items[i].id, status[i]);
        assert_int_equal(run_now(world, call.items[i].id)->version, 1);
    }
    assert_status(world, held.id, RUN_CANCELED);
    assert_int_equal(world->env->applied, applied + 1 + 5 + 1); /* one commit */
    assert_int_equal(unfinished(world), 2);
    triggering_finish(&call);
}

static void batches_of_the_same_keys_do_not_block_each_other(void **state)
{
    enum { BATCHES = 8, KEYS = 4 };
    static struct triggering calls[BATCHES];
    static const char *const keys[KEYS] = { "a", "b", "c", "d" };
    static const enum singleton strategies[] = { SINGLETON_SKIP, SINGLETON_CANCEL };
    struct world *world = with(state, SINGLETON_SKIP);
    fake_store_set_delay(world->fake, 5, 5);
    for (int round = 0; round < 2; round++) {
        configure(world, "task/hello", strategies[round]);
        for (int i = 0; i < BATCHES; i++) {
            struct wish wishes[KEYS] = { { 0 } };
            for (int k = 0; k < KEYS; k++)
                wishes[k] = (struct wish){ .concurrency_key = keys[(i + k) % KEYS] };
            calls[i] = (struct triggering){ 0 };
            assert_int_equal(trigger_all(world, &calls[i], wishes, 1 + i % KEYS), OK);
        }
        for (int i = 0; i < BATCHES; i++) {
            triggering_wait(world, &calls[i]);
            assert_int_equal(calls[i].status, OK);
            triggering_finish(&calls[i]);
        }
        assert_int_equal(unfinished(world), KEYS);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, create_world, destroy_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_skipped_trigger_leads_to_the_run_that_has_its_key),
        TEST(a_key_is_held_until_its_run_has_ended),
        TEST(among_several_runs_the_one_that_has_begun_holds_the_key),
        TEST(skipped_triggers_at_the_same_time_make_one_run),
        TEST(a_failed_trigger_leaves_the_key_to_the_next),
        TEST(a_run_that_ends_in_the_same_turn_is_replaced),
        TEST(a_trigger_cancels_the_run_that_has_not_begun_in_its_commit),
        TEST(a_new_run_starts_after_the_canceled_one_has_ended),
        TEST(a_run_that_executes_stays_if_an_older_one_waits),
        TEST(a_run_that_begins_meanwhile_is_not_canceled_if_another_waits),
        TEST(of_triggers_at_the_same_time_one_run_is_left),
        TEST(runs_of_a_key_execute_one_after_the_other),
        TEST(runs_from_before_the_setting_hold_their_keys),
        TEST(keys_survive_a_restart),
        TEST(keys_are_freed_in_parts_when_the_strategy_is_removed),
        TEST(triggers_that_wait_continue_when_the_strategy_is_removed),
        TEST(a_repeated_request_gets_the_first_answer),
        TEST(a_repeated_request_cancels_once),
        TEST(an_idempotency_key_comes_first),
        TEST(debounce_is_refused_where_a_holder_is_needed),
        TEST(a_descendant_of_the_holder_is_refused),
        TEST(items_of_a_batch_are_skipped_one_after_the_other),
        TEST(items_of_a_batch_cancel_one_after_the_other),
        TEST(batches_of_the_same_keys_do_not_block_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
