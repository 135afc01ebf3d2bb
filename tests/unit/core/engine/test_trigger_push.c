/* Debounced triggers: one delayed run for each key, whatever comes at the same time. */
#include "tests/support/world/unit.h"

#include <stdio.h>

#include "base/metrics.h"
#include "tests/support/world/calls.h"

enum { AT_ONCE = 50 };

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

static int64_t until_of(struct world *world, const char *id)
{
    return run_rare(run_now(world, id))->delayed_until;
}

static size_t stored(const struct world *world)
{
    return fake_store_count(world->fake, WORLD_ENV);
}

static const struct wish leading = { .debounce = "k" };
static const struct wish trailing = { .debounce = "k", .is_trailing = true };

/* ---- one key ---- */

static void a_push_delays_the_run_of_its_key_further(void **state)
{
    struct world *world = *state;
    struct triggered first = trigger(world, leading);
    int64_t before = until_of(world, first.id), triggers = metrics[M_TRIGGERS];
    assert_false(first.joined);
    assert_int_equal(before, loop_wall_ms(world->loop) + 10000);
    world_pass(world, 5000);
    struct triggered retry = trigger(world, leading);
    assert_string_equal(retry.id, first.id);
    assert_true(retry.joined);
    assert_false(retry.cached);
    assert_int_equal(until_of(world, first.id), before + 5000);
    assert_int_equal(stored(world), 1);
    assert_int_equal(metrics[M_TRIGGERS], triggers); /* no number was used */
    world_pass(world, 9999);
    assert_status(world, first.id, RUN_DELAYED);
    world_pass(world, 1);
    assert_status(world, first.id, RUN_QUEUED);
}

static void a_key_belongs_to_its_task(void **state)
{
    struct world *world = *state;
    struct triggered first = trigger(world, leading);
    struct triggered other = trigger(world, (struct wish){ .debounce = "k", .task = "b" });
    assert_string_not_equal(other.id, first.id);
    assert_false(trigger(world, (struct wish){ .debounce = "l" }).joined);
    assert_int_equal(stored(world), 3);
}

static void a_run_that_is_not_delayed_any_more_leaves_its_key(void **state)
{
    struct world *world = *state;
    struct triggered first = trigger(world, leading);
    assert_int_equal(cancel(world, first.id), OK);
    struct triggered second = trigger(world, leading);
    assert_false(second.joined);
    world_pass(world, 10000);
    assert_status(world, second.id, RUN_QUEUED);
    assert_false(trigger(world, leading).joined);
    assert_int_equal(stored(world), 3);
}

static void a_named_delay_applies_to_the_first_run_and_pushes_never_shorten_it(void **state)
{
    struct world *world = *state;
    struct wish late = { .debounce = "k", .delay_ms = 60000 };
    struct triggered first = trigger(world, late);
    int64_t before = until_of(world, first.id);
    assert_int_equal(before, loop_wall_ms(world->loop) + 60000);
    uint32_t version = run_now(world, first.id)->version;
    assert_true(trigger(world, leading).joined);
    assert_int_equal(until_of(world, first.id), before);
    assert_int_equal(run_now(world, first.id)->version, version);
    world_pass(world, 55000);
    assert_true(trigger(world, leading).joined);
    assert_int_equal(until_of(world, first.id), before + 5000);
}

static void trailing_takes_the_newest_payload_and_leading_the_first(void **state)
{
    struct world *world = *state;
    struct triggered first = trigger(world, (struct wish){ .debounce = "k", .tags = "a" });
    trigger(world, (struct wish){ .debounce = "k", .payload = "2", .tags = "b" });
    assert_string_equal(run_now(world, first.id)->payload->data, "{\"n\":1}");
    struct wish newest = trailing;
    newest.payload = "3";
    newest.tags = "c,d";
    newest.metadata = "{\"m\":1}";
    assert_true(trigger(world, newest).joined);
    const struct run *run = run_now(world, first.id);
    assert_string_equal(run->payload->data, "3");
    assert_int_equal(run->tags->count, 2);
    assert_string_equal(run->metadata->data, "{\"m\":1}");
}

static void a_run_that_reached_max_delay_starts_and_another_gets_the_key(void **state)
{
    struct world *world = *state;
    struct wish limited = { .debounce = "k", .max_delay_ms = 15000 };
    struct triggered first = trigger(world, limited);
    world_pass(world, 5000);
    assert_true(trigger(world, limited).joined);
    int64_t until = until_of(world, first.id);
    world_pass(world, 1000);
    struct triggered second = trigger(world, limited);
    assert_false(second.joined);
    assert_string_not_equal(second.id, first.id);
    assert_int_equal(until_of(world, first.id), until);
    assert_string_equal(trigger(world, leading).id, second.id);
    /* The run that lost its key does not get it back: not by a change, nor by a restart,
     * nor when the other run has started. */
    assert_int_equal(tag(world, first.id, "x"), OK);
    assert_string_equal(trigger(world, leading).id, second.id);
    world_restart(world);
    assert_string_equal(trigger(world, leading).id, second.id);
    assert_int_equal(cancel(world, second.id), OK);
    assert_false(trigger(world, leading).joined);
}

static void keys_survive_a_restart(void **state)
{
    struct world *world = *state;
    struct triggered first = trigger(world, leading);
    world_restart(world);
    assert_string_equal(trigger(world, leading).id, first.id);
    assert_int_equal(reschedule(world, first.id, 24 * 3600 * 1000), OK);
    world_restart(world);
    assert_string_equal(trigger(world, leading).id, first.id);
    assert_int_equal(stored(world), 1);
}

/* ---- at the same time ---- */

/* Begins that many triggers in one turn, and returns how many runs they led to. */
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

static void triggers_at_the_same_time_make_one_run(void **state)
{
    static struct triggering all[AT_ONCE];
    struct world *world = *state;
    fake_store_set_delay(world->fake, 10, 10);
    begin_all(world, all, AT_ONCE, &trailing);
    assert_int_equal(finish_all(world, all, AT_ONCE), 1);
    assert_int_equal(stored(world), 1);
    begin_all(world, all, AT_ONCE, &trailing);
    assert_int_equal(finish_all(world, all, AT_ONCE), 0);
    assert_int_equal(stored(world), 1);
}

static void triggers_beyond_max_delay_make_one_run(void **state)
{
    static struct triggering all[AT_ONCE];
    struct world *world = *state;
    struct wish limited = { .debounce = "k", .max_delay_ms = 10001 };
    trigger(world, limited);
    world_pass(world, 5000);
    begin_all(world, all, AT_ONCE, &limited);
    assert_int_equal(finish_all(world, all, AT_ONCE), 1);
    assert_int_equal(stored(world), 2);
}

static void a_run_that_is_canceled_in_the_same_turn_is_not_pushed(void **state)
{
    struct world *world = *state;
    struct triggered first = trigger(world, leading);
    struct triggering push = { 0 };
    run_cancel_alone(world->engine, world->env, slice_of(first.id));
    assert_int_equal(trigger_all(world, &push, &leading, 1), OK);
    triggering_wait(world, &push);
    assert_int_equal(push.status, OK);
    assert_false(push.items[0].joined);
    assert_status(world, first.id, RUN_CANCELED);
    assert_status(world, push.items[0].id, RUN_DELAYED);
    triggering_finish(&push);
}

/* The first trigger's commit fails; the next one makes the run. */
static void a_failed_trigger_leaves_the_key_to_the_next(void **state)
{
    static struct triggering all[3];
    struct world *world = *state;
    fake_store_set_delay(world->fake, 10, 10);
    *fake_store_fault(world->fake) = (struct fault){ .countdown = 1 };
    begin_all(world, all, 3, &leading);
    assert_int_equal(finish_all(world, all, 3), 1);
    assert_int_equal(stored(world), 1);
}

static void a_failed_push_changes_nothing(void **state)
{
    struct world *world = *state;
    struct triggered first = trigger(world, trailing);
    int64_t until = until_of(world, first.id);
    world_pass(world, 1000);
    *fake_store_fault(world->fake) = (struct fault){ .countdown = 1 };
    assert_int_equal(trigger_status(world, trailing), ERR_STORE);
    assert_int_equal(until_of(world, first.id), until);
    assert_true(trigger(world, trailing).joined);
}

/* ---- claims ---- */

static struct triggering *begin_request(struct world *world, struct triggering *call,
                                        const char *request, const struct wish *wish)
{
    *call = (struct triggering){ .op.request_key = bytes_create(slice_of(request)) };
    assert_int_equal(trigger_all(world, call, wish, 1), OK);
    return call;
}

static void a_repeated_push_gets_the_first_answer_and_changes_nothing(void **state)
{
    struct world *world = *state;
    struct triggering call;
    struct triggered first = trigger(world, leading);
    world_pass(world, 1000);
    for (int i = 0; i < 3; i++) {
        int64_t until = until_of(world, first.id);
        triggering_wait(world, begin_request(world, &call, "r", &trailing));
        assert_int_equal(call.status, OK);
        assert_int_equal(call.op.repeated, i > 0);
        assert_string_equal(call.items[0].id, first.id);
        assert_int_equal(until_of(world, first.id) > until, i == 0);
        triggering_finish(&call);
        if (i == 1)
            world_restart(world);
        world_pass(world, 1000);
    }
    assert_int_equal(cancel(world, first.id), OK);
    triggering_wait(world, begin_request(world, &call, "r", &trailing));
    assert_string_equal(call.items[0].id, first.id); /* although its key is free */
    assert_int_equal(stored(world), 1);
    triggering_finish(&call);
}

/* Such a push writes no change of the run, but its claim. */
static void a_push_that_changes_nothing_is_repeated_without_effect(void **state)
{
    struct world *world = *state;
    struct triggering call;
    struct triggered first =
        trigger(world, (struct wish){ .debounce = "k", .delay_ms = 15000 });
    int64_t until = until_of(world, first.id);
    for (int i = 0; i < 2; i++) {
        triggering_wait(world, begin_request(world, &call, "r", &leading));
        assert_int_equal(call.op.repeated, i);
        triggering_finish(&call);
        world_pass(world, 9000);
    }
    assert_int_equal(until_of(world, first.id), until);
}

static void a_push_and_its_repetition_at_the_same_time_count_once(void **state)
{
    struct world *world = *state;
    static struct triggering calls[2];
    struct triggered first = trigger(world, leading);
    uint32_t version = run_now(world, first.id)->version;
    begin_request(world, &calls[0], "r", &trailing);
    begin_request(world, &calls[1], "r", &trailing);
    for (int i = 0; i < 2; i++) {
        triggering_wait(world, &calls[i]);
        assert_string_equal(calls[i].items[0].id, first.id);
    }
    assert_int_equal(calls[0].op.repeated + calls[1].op.repeated, 1);
    assert_int_equal(run_now(world, first.id)->version, version + 1);
    triggering_finish(&calls[0]);
    triggering_finish(&calls[1]);
}

static void a_one_time_token_pushes_once(void **state)
{
    struct world *world = *state;
    trigger(world, leading);
    for (int i = 0; i < 2; i++) {
        struct triggering call = { .op.one_time_token = bytes_create(SLICE("hash")),
                                   .op.token_expires_at = INT64_MAX };
        assert_int_equal(trigger_all(world, &call, &leading, 1), OK);
        triggering_wait(world, &call);
        assert_int_equal(call.status, i ? ERR_RULE : OK);
        triggering_finish(&call);
    }
}

static void an_idempotency_key_wins_over_the_debounce_key(void **state)
{
    struct world *world = *state;
    struct wish both = { .debounce = "k", .key = "i" };
    struct triggered first = trigger(world, both);
    int64_t until = until_of(world, first.id);
    world_pass(world, 1000);
    struct triggered retry = trigger(world, both);
    assert_true(retry.cached);
    assert_int_equal(until_of(world, first.id), until);
    /* A push takes its own key for the run. */
    struct wish other = { .debounce = "k", .key = "j" };
    assert_true(trigger(world, other).joined);
    assert_int_equal(until_of(world, first.id), until + 1000);
    world_pass(world, 1000);
    assert_true(trigger(world, other).cached);
    assert_int_equal(until_of(world, first.id), until + 1000);
    world_pass(world, 9000);
    assert_status(world, first.id, RUN_QUEUED);
    assert_string_equal(trigger(world, other).id, first.id);
    /* A key that led to a failed run is free, and leads to a run again. */
    assert_int_equal(reset_key(world, "hello", "j"), OK);
    assert_string_equal(run_rare(run_now(world, first.id))->idempotency_key->data, "i");
    assert_string_not_equal(trigger(world, other).id, first.id);
    assert_string_equal(trigger(world, both).id, first.id);
}

static void a_key_of_a_failed_run_is_taken_over_by_a_push(void **state)
{
    struct world *world = *state;
    struct triggered old = trigger(world, (struct wish){ .key = "i", .ttl = "1s" });
    world_pass(world, 1000);
    assert_status(world, old.id, RUN_EXPIRED);
    struct triggered delayed = trigger(world, leading);
    struct wish both = { .debounce = "k", .key = "i" };
    struct triggered push = trigger(world, both);
    assert_string_equal(push.id, delayed.id);
    assert_true(push.joined);
    assert_true(trigger(world, both).cached);
}

/* ---- batches ---- */

static void begin_batch(struct world *world, struct triggering *call, const char *id,
                        const struct wish *wishes, size_t count)
{
    *call = (struct triggering){ 0 };
    call->batch = (struct document){ .kind = DOC_BATCH,
                                     .name = bytes_create(slice_of(id)),
                                     .body = bytes_create(SLICE("{}")) };
    call->op.batch = &call->batch;
    snprintf(call->op.batch_id, sizeof(call->op.batch_id), "%s", id);
    assert_int_equal(trigger_all(world, call, wishes, count), OK);
    triggering_wait(world, call);
}

static void items_of_a_batch_push_one_after_the_other(void **state)
{
    struct world *world = *state;
    struct triggering call;
    struct triggered k = trigger(world, leading);
    struct triggered l = trigger(world, (struct wish){ .debounce = "l" });
    struct wish wishes[] = {
        { .debounce = "l", .is_trailing = true, .payload = "1" },
        { .debounce = "k", .is_trailing = true, .payload = "2" },
        { .debounce = "new", .payload = "3" },
        { .debounce = "l", .is_trailing = true, .payload = "4" },
        { .debounce = "new", .is_trailing = true, .payload = "5", .debounce_ms = 20000 },
        { .payload = "6" },
    };
    uint64_t applied = world->env->applied;
    begin_batch(world, &call, "batch_1", wishes, 6);
    const struct trigger *items = call.items;
    assert_int_equal(call.status, OK);
    assert_string_equal(items[0].id, l.id);
    assert_string_equal(items[1].id, k.id);
    assert_string_equal(items[3].id, l.id);
    assert_string_equal(items[4].id, items[2].id);
    static const bool joined[] = { true, true, false, true, true, false };
    for (int i = 0; i < 6; i++)
        assert_int_equal(items[i].joined, joined[i]);
    assert_string_equal(run_now(world, l.id)->payload->data, "4");
    assert_string_equal(run_now(world, k.id)->payload->data, "2");
    const struct run *made = run_now(world, items[2].id);
    assert_string_equal(made->payload->data, "5");
    assert_int_equal(made->due_at, loop_wall_ms(world->loop) + 20000);
    assert_int_equal(made->version, 1);
    assert_int_equal(stored(world), 4);
    assert_int_equal(world->env->applied - applied, 3 + 2 + 1); /* one commit */
    assert_int_equal(call.op.seq, world->env->applied);
    triggering_finish(&call);
}

static void items_beyond_max_delay_share_the_new_run(void **state)
{
    struct world *world = *state;
    struct triggering call;
    struct triggered old = trigger(world, leading);
    world_pass(world, 5000);
    struct wish limited = { .debounce = "k", .max_delay_ms = 10001, .is_trailing = true };
    struct wish wishes[] = { limited, limited, { 0 } };
    wishes[1].payload = "2";
    begin_batch(world, &call, "batch_1", wishes, 3);
    assert_int_equal(call.status, OK);
    assert_string_not_equal(call.items[0].id, old.id);
    assert_string_equal(call.items[1].id, call.items[0].id);
    assert_string_equal(run_now(world, call.items[0].id)->payload->data, "2");
    assert_string_equal(trigger(world, leading).id, call.items[0].id);
    assert_int_equal(stored(world), 3);
    triggering_finish(&call);
}

/* One of the two runs is canceled in the same turn: neither is pushed, and the batch begins
 * again. */
static void a_batch_pushes_all_its_runs_or_none(void **state)
{
    struct world *world = *state;
    struct triggering call = { 0 };
    struct triggered k = trigger(world, leading);
    struct triggered l = trigger(world, (struct wish){ .debounce = "l" });
    struct wish wishes[] = { { .debounce = "l" }, { .debounce = "k" } };
    uint32_t version = run_now(world, l.id)->version;
    world_pass(world, 1000);
    run_cancel_alone(world->engine, world->env, slice_of(k.id));
    begin_batch(world, &call, "batch_1", wishes, 2);
    assert_int_equal(call.status, OK);
    assert_string_equal(call.items[0].id, l.id);
    assert_false(call.items[1].joined);
    assert_status(world, k.id, RUN_CANCELED);
    assert_int_equal(run_now(world, l.id)->version, version + 1);
    assert_int_equal(stored(world), 3);
    triggering_finish(&call);
}

static void batches_of_the_same_keys_do_not_block_each_other(void **state)
{
    enum { BATCHES = 8, KEYS = 4 };
    static struct triggering calls[BATCHES];
    static const char *const keys[KEYS] = { "a", "b", "c", "d" };
    struct world *world = *state;
    fake_store_set_delay(world->fake, 5, 5);
    for (int i = 0; i < BATCHES; i++) {
        struct wish wishes[KEYS] = { { 0 } };
        for (int k = 0; k < KEYS; k++)
            wishes[k] =
                (struct wish){ .debounce = keys[(i + k) % KEYS], .is_trailing = true };
        calls[i] = (struct triggering){ 0 };
        assert_int_equal(trigger_all(world, &calls[i], wishes, 1 + i % KEYS), OK);
    }
    for (int i = 0; i < BATCHES; i++) {
        triggering_wait(world, &calls[i]);
        assert_int_equal(calls[i].status, OK);
        triggering_finish(&calls[i]);
    }
    assert_int_equal(stored(world), KEYS);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, create_world, destroy_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_push_delays_the_run_of_its_key_further),
        TEST(a_key_belongs_to_its_task),
        TEST(a_run_that_is_not_delayed_any_more_leaves_its_key),
        TEST(a_named_delay_applies_to_the_first_run_and_pushes_never_shorten_it),
        TEST(trailing_takes_the_newest_payload_and_leading_the_first),
        TEST(a_run_that_reached_max_delay_starts_and_another_gets_the_key),
        TEST(keys_survive_a_restart),
        TEST(triggers_at_the_same_time_make_one_run),
        TEST(triggers_beyond_max_delay_make_one_run),
        TEST(a_run_that_is_canceled_in_the_same_turn_is_not_pushed),
        TEST(a_failed_trigger_leaves_the_key_to_the_next),
        TEST(a_failed_push_changes_nothing),
        TEST(a_repeated_push_gets_the_first_answer_and_changes_nothing),
        TEST(a_push_that_changes_nothing_is_repeated_without_effect),
        TEST(a_push_and_its_repetition_at_the_same_time_count_once),
        TEST(a_one_time_token_pushes_once),
        TEST(an_idempotency_key_wins_over_the_debounce_key),
        TEST(a_key_of_a_failed_run_is_taken_over_by_a_push),
        TEST(items_of_a_batch_push_one_after_the_other),
        TEST(items_beyond_max_delay_share_the_new_run),
        TEST(a_batch_pushes_all_its_runs_or_none),
        TEST(batches_of_the_same_keys_do_not_block_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
