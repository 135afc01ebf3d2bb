/* Commands are decided on the newest state, one commit per run at a time, and answered. */
#include "tests/support/world/unit.h"

#include <stdio.h>

#include "base/mem.h"
#include "tests/support/world/calls.h"
#include "tests/support/world/reader.h"

static int create_world(void **state)
{
    struct world *world = world_create(NULL);
    register_worker(world, "20260101.1", "hello", 3);
    *state = world;
    return 0;
}

static int destroy_world(void **state)
{
    world_destroy(*state);
    return 0;
}

/* ---- cancel ---- */

static void queue_it(struct world *world, char id[ID_MAX])
{
    memcpy(id, trigger(world, (struct wish){ 0 }).id, ID_MAX);
}

static void delay_it(struct world *world, char id[ID_MAX])
{
    memcpy(id, trigger(world, (struct wish){ .delay_ms = 60000 }).id, ID_MAX);
}

static void dequeue_it(struct world *world, char id[ID_MAX])
{
    queue_it(world, id);
    assert_string_equal(dequeue(world), id);
}

static void execute_it(struct world *world, char id[ID_MAX])
{
    queue_it(world, id);
    execute(world, id);
}

static void make_it_wait(struct world *world, char id[ID_MAX])
{
    execute_it(world, id);
    assert_int_equal(wait_for(world, id, 60000), OK);
}

static void pause_it(struct world *world, char id[ID_MAX])
{
    execute_it(world, id);
    assert_int_equal(break_down(world, id, "{\"type\":\"STRING_ERROR\"}", 1000), OK);
}

static void requeue_it(struct world *world, char id[ID_MAX])
{
    execute_it(world, id);
    assert_int_equal(break_down(world, id, "{\"type\":\"STRING_ERROR\"}", 40000), OK);
}

static void leave_it_without_version(struct world *world, char id[ID_MAX])
{
    memcpy(id, trigger(world, (struct wish){ .task = "unknown" }).id, ID_MAX);
    assert_string_equal(dequeue(world), "");
    assert_status(world, id, RUN_PENDING_VERSION);
}

static void end_it(struct world *world, char id[ID_MAX])
{
    execute_it(world, id);
    assert_int_equal(succeed(world, id, "1"), OK);
}

static void a_run_can_be_canceled_in_every_state(void **state)
{
    static const struct {
        void (*reach)(struct world *world, char id[ID_MAX]);
        bool on_a_worker; /* a worker has to confirm it */
    } cases[] = {
        { queue_it, false },    { delay_it, false },
        { dequeue_it, true },   { execute_it, true },
        { make_it_wait, true }, { pause_it, false },
        { requeue_it, false },  { leave_it_without_version, false },
    };
    struct world *world = *state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char id[ID_MAX];
        cases[i].reach(world, id);
        assert_int_equal(cancel(world, id), OK);
        const struct run *run = run_now(world, id);
        assert_status(world, id, RUN_CANCELED);
        assert_non_null(strstr(run->error->data, "Canceled by user"));
        assert_int_equal(run_is_settled(run), !cases[i].on_a_worker);
        assert_int_equal(run->finished_at > 0, !cases[i].on_a_worker);
        uint32_t version = run->version;
        assert_int_equal(cancel(world, id), OK); /* a second cancel changes nothing */
        assert_int_equal(run_now(world, id)->version, version);
        world_pass(world, 60000);
        assert_true(run_is_settled(run_now(world, id)));
        assert_status(world, id, RUN_CANCELED);
    }
    assert_int_equal(world->env->unfinished, 0);
    assert_int_equal(world->env->queues.running, 0);
    assert_int_equal(world->env->queues.waiting, 0);
}

static void canceling_a_final_run_changes_nothing(void **state)
{
    struct world *world = *state;
    char id[ID_MAX];
    end_it(world, id);
    uint32_t version = run_now(world, id)->version;
    assert_int_equal(cancel(world, id), OK);
    assert_status(world, id, RUN_COMPLETED);
    assert_int_equal(run_now(world, id)->version, version);
}

static void unknown_run_is_not_found(void **state)
{
    static const char *const ids[] = { "run_x", "", "run_0123456789012345678901234567890" };
    struct world *world = *state;
    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
        assert_int_equal(cancel(world, ids[i]), ERR_NOT_FOUND);
        assert_int_equal(tag(world, ids[i], "a"), ERR_NOT_FOUND);
    }
}

static void a_run_of_another_environment_is_not_found(void **state)
{
    struct world *world = *state;
    struct environment *own = world->env;
    struct triggered got = trigger(world, (struct wish){ 0 });
    world->env = engine_add_environment(world->engine, 2, "env_other", false);
    assert_int_equal(cancel(world, got.id), ERR_NOT_FOUND);
    world->env = own;
    assert_status(world, got.id, RUN_QUEUED);
}

/* ---- children ---- */

static void children_of_a_canceled_parent_end(void **state)
{
    struct world *world = *state;
    struct triggered parent = trigger(world, (struct wish){ 0 });
    struct triggered child = trigger(world, (struct wish){ .parent = parent.id });
    struct triggered grandchild = trigger(world, (struct wish){ .parent = child.id });
    struct triggered other = trigger(world, (struct wish){ 0 });
    assert_int_equal(cancel(world, parent.id), OK);
    world_settle(world);
    assert_status(world, child.id, RUN_CANCELED);
    assert_status(world, grandchild.id, RUN_CANCELED);
    assert_status(world, other.id, RUN_QUEUED);
}

static void many_children_end_while_other_runs_continue(void **state)
{
    enum { CHILDREN = 1200 };
    struct world *world = *state;
    static struct triggered children[CHILDREN];
    struct triggered parents[2];
    struct triggered other = trigger(world, (struct wish){ 0 });
    for (int i = 0; i < 2; i++)
        parents[i] = trigger(world, (struct wish){ 0 });
    for (int i = 0; i < CHILDREN; i++)
        children[i] = trigger(world, (struct wish){ .parent = parents[i % 2].id });
    for (int i = 0; i < 2; i++)
        assert_int_equal(cancel(world, parents[i].id), OK);
    world_settle(world);
    for (int i = 0; i < CHILDREN; i++)
        assert_status(world, children[i].id, RUN_CANCELED);
    assert_status(world, other.id, RUN_QUEUED);
}

/* Its commit was in flight when the parent was canceled. */
static void child_stored_after_the_cancel_of_its_parent_ends_too(void **state)
{
    struct world *world = *state;
    struct triggered parent = trigger(world, (struct wish){ 0 });
    struct triggering child = { 0 };
    assert_int_equal(cancel(world, parent.id), OK);
    assert_int_equal(trigger_all(world, &child, &(struct wish){ .parent = parent.id }, 1),
                     OK);
    triggering_wait(world, &child);
    world_settle(world);
    assert_int_equal(child.status, OK);
    assert_status(world, child.items[0].id, RUN_CANCELED);
    triggering_finish(&child);
}

/* A run that a task triggered may outlive it. */
static void children_of_a_completed_parent_continue(void **state)
{
    struct world *world = *state;
    struct triggered parent = trigger(world, (struct wish){ 0 });
    struct triggered child = trigger(world, (struct wish){ .parent = parent.id });
    finish_run(world, parent.id, 1);
    world_settle(world);
    assert_status(world, child.id, RUN_QUEUED);
    world_restart(world);
    world_settle(world);
    assert_status(world, child.id, RUN_QUEUED);
}

static void sweep_after_a_restart_ends_leftover_children(void **state)
{
    struct world *world = *state;
    struct triggered parent = trigger(world, (struct wish){ 0 });
    struct triggered child = trigger(world, (struct wish){ .parent = parent.id });
    assert_int_equal(cancel(world, parent.id), OK);
    *fake_store_fault(world->fake) = (struct fault){ .countdown = 1 };
    world_settle(world); /* the cancel of the child fails */
    assert_true(fake_store_fault(world->fake)->tripped);
    assert_status(world, child.id, RUN_QUEUED);
    world_restart(world);
    world_settle(world);
    assert_status(world, child.id, RUN_CANCELED);
}

static void child_ends_if_its_canceled_parent_is_only_in_the_store(void **state)
{
    struct world_options options = { .engine.memory = 1 };
    struct world *world = world_create(&options);
    (void)state;
    struct triggered parent = trigger(world, (struct wish){ 0 });
    assert_int_equal(cancel(world, parent.id), OK);
    world_settle(world);
    assert_null(environment_find(world->env, slice_of(parent.id)));
    struct triggered child = trigger(world, (struct wish){ .parent = parent.id });
    world_settle(world);
    assert_int_equal(run_now(world, child.id)->status, RUN_CANCELED);
    world_destroy(world);
}

/* ---- other commands ---- */

static void only_a_delayed_run_can_be_rescheduled(void **state)
{
    struct world *world = *state;
    struct triggered got = trigger(world, (struct wish){ .delay_ms = 1000 });
    assert_int_equal(reschedule(world, got.id, 5000), OK);
    world_pass(world, 1000);
    assert_status(world, got.id, RUN_DELAYED);
    world_pass(world, 4000);
    assert_status(world, got.id, RUN_QUEUED);
    assert_int_equal(reschedule(world, got.id, 5000), ERR_INVALID);
}

struct listing {
    struct add_stream op; /* must be first */
    enum err status;
    uint64_t seq;
};

static void on_listed(struct command *command, enum err status)
{
    struct listing *listing = container_of(command, struct listing, op.command);
    listing->status = status;
    listing->seq = command->seq;
}

static struct listing list_stream(struct world *world, const char *id, const char *key)
{
    struct listing listing = { .op = { .key = slice_of(key) }, .status = ERR_INTERNAL };
    run_add_stream(world->engine, world->env, slice_of(id), &listing.op, on_listed);
    world_settle(world);
    return listing;
}

static void a_run_lists_each_of_its_streams_once(void **state)
{
    struct world *world = *state;
    struct triggered got = trigger(world, (struct wish){ 0 });
    assert_int_equal(list_stream(world, got.id, "a").status, OK);
    assert_int_equal(list_stream(world, got.id, "b\"c").status, OK);
    struct listing retry = list_stream(world, got.id, "b\"c");
    assert_int_equal(retry.status, OK);
    assert_int_equal(retry.seq, 0);
    const struct run *run = run_now(world, got.id);
    assert_string_equal(run_rare(run)->streams->data, "[\"a\",\"b\\\"c\"]");
    assert_int_equal(run->version, 3);
    assert_true(run_has_stream(run, SLICE("b\"c")));
    assert_false(run_has_stream(run, SLICE("b")));
}

static void run_lists_a_limited_number_of_streams_and_none_after_its_end(void **state)
{
    struct world *world = *state;
    struct triggered got = trigger(world, (struct wish){ 0 });
    char key[16];
    for (int i = 0; i < RUN_STREAMS_MAX; i++) {
        snprintf(key, sizeof(key), "k%d", i);
        assert_int_equal(list_stream(world, got.id, key).status, OK);
    }
    assert_int_equal(list_stream(world, got.id, "more").status, ERR_RULE);
    assert_int_equal(list_stream(world, got.id, "k7").status, OK);
    assert_int_equal(run_count_streams(run_now(world, got.id)), RUN_STREAMS_MAX);
    assert_int_equal(cancel(world, got.id), OK);
    assert_int_equal(list_stream(world, got.id, "k7").status, ERR_INVALID);
    assert_int_equal(list_stream(world, "run_none", "a").status, ERR_NOT_FOUND);
}

static void tags_are_added_once_and_not_beyond_ten(void **state)
{
    struct world *world = *state;
    struct triggered got = trigger(world, (struct wish){ .tags = "a,b" });
    uint64_t whole_rev = run_now(world, got.id)->whole_rev;
    assert_int_equal(tag(world, got.id, "b,c,c"), OK);
    assert_int_equal(run_now(world, got.id)->tags->count, 3);
    assert_true(run_now(world, got.id)->whole_rev > whole_rev);
    uint32_t version = run_now(world, got.id)->version;
    assert_int_equal(tag(world, got.id, "a"), OK);
    assert_int_equal(run_now(world, got.id)->version, version);
    assert_int_equal(tag(world, got.id, "1,2,3,4,5,6,7"), OK);
    assert_int_equal(tag(world, got.id, "8"), ERR_RULE);
    assert_int_equal(run_now(world, got.id)->tags->count, RUN_TAGS_MAX);
}

static void metadata_is_changed_by_operations(void **state)
{
    struct world *world = *state;
    struct triggered got = trigger(world, (struct wish){ .metadata = "{\"n\":1}" });
    const char *increment = "[{\"type\":\"increment\",\"key\":\"n\",\"value\":2}]";
    assert_int_equal(annotate(world, got.id, increment), OK);
    assert_string_equal(run_now(world, got.id)->metadata->data, "{\"n\":3}");
    assert_string_equal(run_now(world, got.id)->metadata_seed->data, "{\"n\":1}");
    assert_int_equal(annotate(world, got.id, "[{\"type\":\"no\"}]"), ERR_INVALID);
    assert_int_equal(cancel(world, got.id), OK);
    assert_int_equal(annotate(world, got.id, increment), OK); /* within its hour */
    world_pass(world, 3600 * 1000 + 1);
    assert_int_equal(annotate(world, got.id, increment), ERR_RULE);
}

/* A finished run may have left memory: it is read and changed, and may be evicted again. */
static void run_that_is_only_in_the_store_can_be_changed(void **state)
{
    struct world_options options = { .engine.memory = 1 };
    struct world *world = world_create(&options);
    (void)state;
    struct triggered got = trigger(world, (struct wish){ .metadata = "{\"n\":1}" });
    assert_int_equal(cancel(world, got.id), OK);
    for (int n = 2; n < 5; n++) {
        char metadata[32];
        world_settle(world);
        assert_null(environment_find(world->env, slice_of(got.id)));
        assert_int_equal(
            annotate(world, got.id, "[{\"type\":\"increment\",\"key\":\"n\",\"value\":1}]"),
            OK);
        snprintf(metadata, sizeof(metadata), "{\"n\":%d}", n);
        assert_string_equal(run_now(world, got.id)->metadata->data, metadata);
    }
    world_destroy(world);
}

/* After a takeover, ended runs are read while commands may load some of them, too. */
static void run_that_a_command_has_loaded_is_not_loaded_twice(void **state)
{
    struct world_options options = { .engine.memory = 1 };
    struct world *world = world_create(&options);
    (void)state;
    struct triggered got = trigger(world, (struct wish){ .metadata = "{\"n\":1}" });
    assert_int_equal(cancel(world, got.id), OK);
    world_settle(world);
    assert_null(environment_find(world->env, slice_of(got.id)));
    struct run held = { 0 }, read = { 0 };
    run_copy(&held, run_now(world, got.id));
    run_copy(&read, &held);
    struct tracked *loaded = environment_load(world->env, &held); /* as a command does */
    engine_load_run(world->engine, world->env, &read);
    assert_ptr_equal(environment_find(world->env, slice_of(got.id)), loaded);
    assert_int_equal(world->env->runs.count, 1);
    world_destroy(world);
}

/* A walk below cold takes these runs from the store. */
static void assert_runs_below_cold_are_unfinished(const struct environment *env)
{
    const struct order *all = &env->hub.all.order;
    for (uint32_t i = 0; i < all->count; i++) {
        const struct tracked *run = order_place(all, i).run;
        if (run && run_is_settled(&run->run))
            assert_true(run->run.rev > env->cold);
    }
}

static void ended_runs_leave_memory_in_the_order_of_their_last_changes(void **state)
{
    struct world_options options = { .engine.memory = 20000 };
    struct world *world = world_create(&options);
    (void)state;
    for (int i = 0; i < 200; i++) {
        struct triggered got = trigger(world, (struct wish){ .delay_ms = 3600 * 1000 });
        if (i % 4)
            assert_int_equal(cancel(world, got.id), OK);
        world_settle(world);
        assert_runs_below_cold_are_unfinished(world->env);
    }
    assert_true(world->env->cold > 0);
    world_destroy(world);
}

/* ---- parked commands ---- */

enum { PARKED = 4 };

struct parked {
    struct change_metadata metadata[PARKED];
    struct add_tags tags;
    struct cancel cancel;
    unsigned answers;
    enum err statuses[8];
    uint64_t seqs[8];
};

static struct parked *parked; /* answers arrive in order */

static void on_answer(struct command *command, enum err status)
{
    assert_true(parked->answers < 8);
    parked->statuses[parked->answers] = status;
    parked->seqs[parked->answers++] = command->seq;
}

/* While the first commit is in flight, the others wait; then they go as one, in order. */
static void parked_commands_are_committed_together_in_order(void **state)
{
    struct world *world = *state;
    struct triggered got = trigger(world, (struct wish){ .metadata = "{\"l\":[]}" });
    struct slice id = slice_of(got.id), x = SLICE("x");
    struct parked all = { .tags = { .tags = &x, .count = 1 } };
    char operations[PARKED][64];
    uint64_t seq = world->env->applied;

    parked = &all;
    fake_store_set_delay(world->fake, 100, 100);
    for (int i = 0; i < PARKED; i++) {
        snprintf(operations[i], sizeof(operations[i]),
                 "[{\"type\":\"append\",\"key\":\"l\",\"value\":%d}]", i);
        all.metadata[i].operations = slice_of(operations[i]);
        run_change_metadata(world->engine, world->env, id, &all.metadata[i], on_answer);
        if (i == 0)
            world_settle(world); /* its commit begins */
        if (i == 1)
            run_add_tags(world->engine, world->env, id, &all.tags, on_answer);
    }
    run_cancel(world->engine, world->env, id, &all.cancel, on_answer);
    world_pass(world, 100);
    assert_int_equal(all.answers, 1);
    world_pass(world, 100);

    assert_int_equal(all.answers, PARKED + 2);
    for (unsigned i = 0; i < all.answers; i++) {
        assert_int_equal(all.statuses[i], OK);
        assert_int_equal(all.seqs[i], seq + 1 + i);
    }
    const struct run *run = run_now(world, got.id);
    assert_string_equal(run->metadata->data, "{\"l\":[0,1,2,3]}");
    assert_int_equal(run->version, 1 + PARKED + 2);
    assert_status(world, got.id, RUN_CANCELED);
}

/* A client that reconnects still gets what the earlier change of the commit marked. */
static void a_commit_of_two_changes_keeps_the_positions_of_both(void **state)
{
    struct world *world = *state;
    struct triggered got = trigger(world, (struct wish){ .tags = "a" });
    struct slice id = slice_of(got.id), x = SLICE("x");
    uint64_t seq = world->env->applied;
    struct parked all = { .tags = { .tags = &x, .count = 1 } };

    parked = &all;
    run_add_tags(world->engine, world->env, id, &all.tags, on_answer);
    all.metadata[0].replacement = SLICE("{\"k\":1}");
    run_change_metadata(world->engine, world->env, id, &all.metadata[0], on_answer);
    run_cancel(world->engine, world->env, id, &all.cancel, on_answer);
    world_settle(world);
    assert_int_equal(all.answers, 3);
    assert_int_equal(run_now(world, got.id)->rev, seq + 3);
    assert_true(run_now(world, got.id)->whole_rev > seq);
    assert_true(run_now(world, got.id)->metadata_rev > seq);
    assert_true(run_now(world, got.id)->output_rev > seq);

    struct reader *reader = reader_create(world);
    follow(reader, 1, "tag:x", seq, seq);
    world_settle(world);
    struct buf shown = { 0 };
    show_frame(reader->frames[0], &shown);
    assert_non_null(strstr(shown.ptr, "v4 whole"));
    buf_finish(&shown);
}

static void rejected_command_does_not_stop_the_others(void **state)
{
    struct world *world = *state;
    struct triggered got = trigger(world, (struct wish){ 0 });
    struct slice id = slice_of(got.id), x = SLICE("x");
    struct reschedule reschedule = { .delayed_until = INT64_MAX };
    struct parked all = { .tags = { .tags = &x, .count = 1 } };
    parked = &all;
    run_add_tags(world->engine, world->env, id, &all.tags, on_answer);
    run_reschedule(world->engine, world->env, id, &reschedule, on_answer);
    run_cancel(world->engine, world->env, id, &all.cancel, on_answer);
    world_settle(world);
    assert_int_equal(all.answers, 3);
    assert_int_equal(all.statuses[0], OK);
    assert_int_equal(all.statuses[1], ERR_INVALID);
    assert_int_equal(all.statuses[2], OK);
    assert_int_equal(all.seqs[1], 0);
    assert_int_equal(run_now(world, got.id)->version, 3);
}

static void a_failed_commit_fails_its_commands_and_not_the_next(void **state)
{
    struct world *world = *state;
    struct triggered got = trigger(world, (struct wish){ 0 });
    struct slice id = slice_of(got.id), x = SLICE("x");
    struct parked all = { .tags = { .tags = &x, .count = 1 } };
    parked = &all;
    *fake_store_fault(world->fake) = (struct fault){ .countdown = 1 };
    fake_store_set_delay(world->fake, 10, 10);
    run_add_tags(world->engine, world->env, id, &all.tags, on_answer);
    world_settle(world);
    run_cancel(world->engine, world->env, id, &all.cancel, on_answer);
    world_pass(world, 10);
    world_pass(world, 10);
    assert_int_equal(all.answers, 2);
    assert_int_equal(all.statuses[0], ERR_STORE);
    assert_int_equal(all.statuses[1], OK);
    assert_null(run_now(world, got.id)->tags);
    assert_status(world, got.id, RUN_CANCELED);
}

/* ---- faults ---- */

/* Lives through a run: every step is answered, and memory then matches the answer. */
static bool live(struct world *world)
{
    enum err statuses[] = {
        trigger_status(world, (struct wish){ .key = "k", .max_attempts = 3 }),
        OK,
        OK,
        OK,
    };
    const char *id = dequeue(world);
    if (*id) {
        char own[ID_MAX];
        snprintf(own, sizeof(own), "%s", id);
        statuses[1] = start(world, own);
        if (!statuses[1])
            statuses[2] = succeed(world, own, "1");
        statuses[3] = tag(world, own, "x");
        run_now(world, own); /* checks that memory matches the store */
        if (!statuses[1] && !statuses[2])
            assert_status(world, own, RUN_COMPLETED);
    }
    for (size_t i = 0; i < 4; i++)
        assert_true(statuses[i] == OK || statuses[i] == ERR_STORE);
    return *id && !statuses[0] && !statuses[1] && !statuses[2] && !statuses[3];
}

static void failing_store_never_loses_a_reply(void **state)
{
    (void)state;
    for (int nth = 1;; nth++) {
        struct world *world = world_create(NULL);
        register_worker(world, "20260101.1", "hello", 3);
        *fake_store_fault(world->fake) = (struct fault){ .countdown = nth };
        bool all_well = live(world);
        bool tripped = fake_store_fault(world->fake)->tripped;
        assert_true(tripped || all_well);
        world_destroy(world);
        if (!tripped) {
            assert_int_equal(nth, 6); /* trigger, lease, start, complete, tag */
            break;
        }
    }
}

static void permanently_failing_store_answers_every_command(void **state)
{
    struct world *world = *state;
    struct triggered got = trigger(world, (struct wish){ .ttl = "1s", .tags = "a" });
    *fake_store_fault(world->fake) = (struct fault){ .countdown = 1, .repeat = -1 };
    assert_int_equal(trigger_status(world, (struct wish){ 0 }), ERR_STORE);
    assert_int_equal(cancel(world, got.id), ERR_STORE);
    assert_string_equal(dequeue(world), "");
    assert_status(world, got.id, RUN_QUEUED);
    *fake_store_fault(world->fake) = (struct fault){ 0 };
    world_pass(world, 1000);
    assert_status(world, got.id, RUN_EXPIRED);
}

static void engine_that_ends_during_a_sweep_leaks_nothing(void **state)
{
    struct world *world = *state;
    engine_sweep(world->engine);
    world_restart(world); /* the end of the test sees a second one */
}

/* A million of them take 500 bytes each with tags, tables and order (bench/README.md). */
static void a_run_in_memory_stays_small(void **state)
{
    (void)state;
    assert_true(sizeof(struct tracked) <= 376);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, create_world, destroy_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_run_can_be_canceled_in_every_state),
        TEST(canceling_a_final_run_changes_nothing),
        TEST(unknown_run_is_not_found),
        TEST(a_run_of_another_environment_is_not_found),
        TEST(children_of_a_canceled_parent_end),
        TEST(many_children_end_while_other_runs_continue),
        TEST(child_stored_after_the_cancel_of_its_parent_ends_too),
        TEST(children_of_a_completed_parent_continue),
        TEST(sweep_after_a_restart_ends_leftover_children),
        cmocka_unit_test(child_ends_if_its_canceled_parent_is_only_in_the_store),
        TEST(only_a_delayed_run_can_be_rescheduled),
        TEST(a_run_lists_each_of_its_streams_once),
        TEST(run_lists_a_limited_number_of_streams_and_none_after_its_end),
        TEST(tags_are_added_once_and_not_beyond_ten),
        TEST(metadata_is_changed_by_operations),
        cmocka_unit_test(run_that_is_only_in_the_store_can_be_changed),
        cmocka_unit_test(run_that_a_command_has_loaded_is_not_loaded_twice),
        cmocka_unit_test(ended_runs_leave_memory_in_the_order_of_their_last_changes),
        TEST(parked_commands_are_committed_together_in_order),
        TEST(a_commit_of_two_changes_keeps_the_positions_of_both),
        TEST(rejected_command_does_not_stop_the_others),
        TEST(a_failed_commit_fails_its_commands_and_not_the_next),
        cmocka_unit_test(failing_store_never_loses_a_reply),
        TEST(permanently_failing_store_answers_every_command),
        TEST(engine_that_ends_during_a_sweep_leaks_nothing),
        cmocka_unit_test(a_run_in_memory_stays_small),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
