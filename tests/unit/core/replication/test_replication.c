/* A follower's memory keeps up with the leader's, and is trusted only while that is sure. */
#include "tests/support/world/unit.h"

#include <string.h>

#include "tests/support/world/calls.h"
#include "tests/support/world/replication_scene.h"

/* ---- following ---- */

static void follower_has_what_was_before_and_what_comes(void **state)
{
    struct replication_scene *scene = *state;
    create(scene->world, "run_1", "a");
    finish_run(scene->world, "run_1", 10);
    create(scene->world, "run_2", "a,b");
    scene_connect(scene);
    assert_same_memory(scene);
    assert_true(is_trusted(scene));
    assert_same_run(scene, "run_2");
    assert_null(environment_find(scene->copy, SLICE("run_1"))); /* the store has it */
    create(scene->world, "run_3", NULL);
    change(scene->world, "run_2", 2);
    finish_run(scene->world, "run_3", PACKET);
    scene_pass(scene, 10);
    assert_same_memory(scene);
    assert_same_run(scene, "run_2");
    assert_same_run(scene, "run_3");
    assert_int_equal(scene->replica.changes, 3);
}

static void packets_travel_only_in_the_change_that_wrote_them(void **state)
{
    struct replication_scene *scene = *state;
    scene_connect(scene);
    create(scene->world, "run_1", "a");
    set_metadata(scene->world, "run_1", "{\"a\":1}");
    change(scene->world, "run_1", 3);
    scene_pass(scene, 10);
    assert_int_equal(scene->runs_sent, 3);
    assert_true(scene->payloads_sent <= 1);
    assert_same_memory(scene);
    assert_same_run(scene, "run_1");
    assert_non_null(run_in(scene->copy, "run_1")->metadata);
}

static void change_of_an_evicted_run_comes_with_its_state_before(void **state)
{
    struct replication_scene *scene = *state;
    scene_connect(scene);
    create(scene->world, "run_1", "a");
    finish_run(scene->world, "run_1", PACKET);
    scene_pass(scene, 10);
    while (environment_evict(scene->copy, 0))
        ;
    assert_null(environment_find(scene->copy, SLICE("run_1")));
    add_tag(scene->world, "run_1", "b");
    scene_pass(scene, 10);
    assert_int_equal(scene->befores_sent, 1);
    assert_same_memory(scene);
    assert_same_run(scene, "run_1");
}

static void next_connection_continues_from_memory(void **state)
{
    struct replication_scene *scene = *state;
    create(scene->world, "run_1", "a");
    scene_connect(scene);
    finish_run(scene->world, "run_1", 10);
    scene_pass(scene, 10);
    scene_disconnect(scene);
    assert_false(is_trusted(scene));
    create(scene->world, "run_2", "a");
    change(scene->world, "run_2", 2);
    world_settle(scene->world);
    scene_connect(scene);
    assert_same_memory(scene);
    assert_true(is_trusted(scene));
    assert_same_run(scene, "run_1"); /* it was not loaded again */
    assert_same_run(scene, "run_2");
}

static void report(struct replication_scene *scene, uint64_t taken)
{
    struct repl_frame frame = { .kind = REPL_REPORT,
                                .report = { .program = "9.9.9", .taken = taken } };
    source_receive(&scene->source, &scene->follower, &frame);
}

static void leader_knows_how_far_a_follower_is_behind(void **state)
{
    struct replication_scene *scene = *state;
    create(scene->world, "run_1", "a"); /* before it joins: not counted */
    scene_connect(scene);
    assert_int_equal(scene->follower.reported_ms, 0);
    report(scene, 0);
    assert_int_equal(scene->follower.behind, 0);
    change(scene->world, "run_1", 2);
    change(scene->world, "run_1", 3);
    report(scene, 0);
    assert_int_equal(scene->follower.behind, 2);
    assert_true(scene->follower.reported_ms > 0);
    assert_string_equal(scene->follower.report.program, "9.9.9");
    report(scene, 2);
    assert_int_equal(scene->follower.behind, 0);
    report(scene, 3); /* it is not ahead of the leader, whatever it reports */
    assert_int_equal(scene->follower.behind, 0);
    assert_string_equal(scene->ended, "");
}

/* ---- catching up ---- */

/* The accounts have yet to be read. */
static void begin_to_catch_up(struct replication_scene *scene)
{
    replica_connected(&scene->replica);
    scene_deliver(scene);
    assert_int_equal(scene->replica.state, REPLICA_CATCHING);
}

static void frames_wait_while_the_accounts_are_read(void **state)
{
    struct replication_scene *scene = *state;
    create(scene->world, "run_1", "a");
    begin_to_catch_up(scene);
    change(scene->world, "run_1", 2);
    scene_deliver(scene);
    assert_false(waiting_is_empty(&scene->replica.waiting));
    assert_int_equal(scene->replica.waiting.changes, 1);
    assert_false(is_trusted(scene));
    for (int i = 0; i < 10; i++)
        scene_pass(scene, 50);
    assert_int_equal(scene->replica.state, REPLICA_FOLLOWING);
    assert_int_equal(scene->replica.waiting.changes, 0);
    assert_same_memory(scene);
    assert_true(is_trusted(scene));
}

static void too_many_waiting_bytes_end_the_connection(void **state)
{
    struct replication_scene *scene = *state;
    struct repl_frame frame = { .kind = REPL_SUM };
    begin_to_catch_up(scene);
    replica_receive(&scene->replica, &frame, REPLICA_WAITING_MAX / 2);
    assert_string_equal(scene->ended, "");
    replica_receive(&scene->replica, &frame, REPLICA_WAITING_MAX / 2);
    assert_string_equal(scene->ended, "too many changes have waited for the database");
    assert_true(waiting_is_empty(&scene->replica.waiting));
}

static void short_frames_count_with_the_memory_that_they_take(void **state)
{
    struct replication_scene *scene = *state;
    begin_to_catch_up(scene);
    for (size_t i = 0; i < REPLICA_WAITING_MAX / sizeof(struct repl_frame); i++) {
        struct repl_frame frame = { .kind = REPL_SUM };
        replica_receive(&scene->replica, &frame, 5);
    }
    assert_string_equal(scene->ended, "too many changes have waited for the database");
}

static void runs_that_are_caught_up_stay_within_the_budget(void **state)
{
    struct replication_scene *scene = *state;
    char id[16];
    scene_connect(scene);
    scene->copy->budget = SMALL_MEMORY;
    scene_disconnect(scene);
    for (int i = 0; i < 50; i++) {
        snprintf(id, sizeof(id), "run_%d", i);
        create(scene->world, id, NULL);
        finish_run(scene->world, id, PACKET);
    }
    world_settle(scene->world);
    scene_connect(scene);
    assert_same_memory(scene);
    assert_true(scene->copy->runs.count > 0);
    assert_true(scene->copy->finals.used <= SMALL_MEMORY);
}

/* Runs that leave memory as they are read: a leader's ids and times must be after theirs, even
 * if its clock is slow. */
static void newest_run_that_is_caught_up_is_noted(void **state)
{
    struct replication_scene *scene = *state;
    scene_connect(scene);
    scene->copy->budget = 1;
    scene_disconnect(scene);
    struct triggered newest = trigger(scene->world, (struct wish){ 0 });
    finish_run(scene->world, newest.id, PACKET);
    int64_t created_ms = run_now(scene->world, newest.id)->created_at;
    world_settle(scene->world);
    scene_connect(scene);
    assert_int_equal(scene->copy->runs.count, 0);
    assert_string_equal(scene->replica.newest_id, newest.id);
    assert_int_equal(scene->replica.newest_ms, created_ms);
}

static void on_written(struct document_write *write, enum err status)
{
    (void)write;
    assert_int_equal(status, OK);
}

/* The commit is in the database, but its response has not reached the leader. */
static void memory_ahead_of_the_leader_is_not_shown(void **state)
{
    struct replication_scene *scene = *state;
    struct document_write write;
    struct bytes *name = bytes_create(SLICE("name"));
    create(scene->world, "run_1", "a");
    fake_store_set_delay(scene->world->fake, 700, 0);
    document_write_begin(scene->world->engine, WORLD_ENV, DOC_VARIABLE, name, name, 0,
                         &write, on_written);
    scene_pass(scene, 500);
    scene_connect(scene);
    assert_int_equal(scene->copy->applied, scene->world->env->applied + 1);
    assert_int_equal(scene->replica.state, REPLICA_FOLLOWING);
    assert_true(environment_is_late(scene->copy));
    assert_true(is_trusted(scene)); /* other environments do not wait */
    scene_pass(scene, 200);         /* the stream reaches memory */
    assert_same_memory(scene);
    assert_true(is_trusted(scene));
    assert_false(environment_is_late(scene->copy));
    bytes_unref(name);
}

static void retention_removes_runs_from_memory(void **state)
{
    struct replication_scene *scene = *state;
    scene_connect(scene);
    create(scene->world, "run_1", "a");
    create(scene->world, "run_2", "a");
    finish_run(scene->world, "run_1", 10);
    scene_pass(scene, 10);
    assert_int_equal(scene->copy->runs.count, 2);
    scene_purge(scene);
    scene_pass(scene, 10);
    assert_int_equal(scene->copy->runs.count, 1);
    assert_int_equal(scene->copy->purged, scene->world->env->purged);
    assert_int_equal(scene->copy->floor, scene->world->env->floor);
    assert_int_equal(scene->floors, 1);
    assert_same_memory(scene);
}

static void memory_below_the_purged_position_is_loaded_again(void **state)
{
    struct replication_scene *scene = *state;
    create(scene->world, "run_1", "a");
    create(scene->world, "run_2", "a");
    scene_connect(scene);
    scene_disconnect(scene);
    finish_run(scene->world, "run_1", 10);
    create(scene->world, "run_3", "a");
    scene_purge(scene);
    scene_connect(scene);
    assert_null(environment_find(scene->copy, SLICE("run_1"))); /* no page has it */
    assert_same_memory(scene);
    assert_int_equal(scene->copy->unfinished, 2);
    assert_int_equal(scene->floors, 1);
}

static void environment_that_the_leader_has_dropped_leaves_memory(void **state)
{
    struct replication_scene *scene = *state;
    create(scene->world, "run_1", "a");
    scene_connect(scene);
    assert_int_equal(scene->copy->runs.count, 1);
    scene->has_dropped = true;
    scene_connect(scene);
    assert_true(replica_was_left(&scene->replica, WORLD_ENV));
    assert_int_equal(scene->copy->runs.count, 0);
    scene->has_dropped = false;
    source_add(&scene->source, scene->world->env);
    scene_pass(scene, 10);
    assert_false(replica_was_left(&scene->replica, WORLD_ENV));
    assert_same_memory(scene);
    assert_same_run(scene, "run_1");
}

static void environment_that_is_dropped_meanwhile_leaves_memory(void **state)
{
    struct replication_scene *scene = *state;
    create(scene->world, "run_1", "a");
    scene_connect(scene);
    source_drop(&scene->source, WORLD_ENV);
    source_drop(&scene->source, WORLD_ENV + 1);
    scene_pass(scene, 10);
    assert_true(replica_was_left(&scene->replica, WORLD_ENV));
    assert_int_equal(scene->copy->runs.count, 0);
    replica_forget(&scene->replica, WORLD_ENV);
    source_add(&scene->source, scene->world->env);
    scene_pass(scene, 10);
    assert_same_memory(scene);
    assert_same_run(scene, "run_1");
}

static void memory_is_loaded_without_a_leader(void **state)
{
    struct replication_scene *scene = *state;
    create_many(scene->world, 20, "a");
    finish_run(scene->world, "run_001", 10);
    replica_load(&scene->replica);
    scene_pass(scene, 0);
    assert_int_equal(scene->loads, 1);
    assert_int_equal(scene->load_status, OK);
    assert_int_equal(scene->replica.state, REPLICA_OFF);
    assert_same_memory(scene);
    assert_int_equal(scene->copy->generation, 1);
    scene_connect(scene);
    change(scene->world, "run_002", 2);
    scene_pass(scene, 0);
    assert_same_memory(scene);
    assert_int_equal(scene->copy->generation, 1); /* it continued from memory */
}

static void retention_is_completed_without_a_leader(void **state)
{
    struct replication_scene *scene = *state;
    create(scene->world, "run_1", "a");
    create(scene->world, "run_2", "a");
    finish_run(scene->world, "run_1", 10);
    scene_connect(scene);
    scene_disconnect(scene);
    scene_purge(scene);
    replica_load(&scene->replica);
    scene_pass(scene, 0);
    assert_int_equal(scene->loads, 1);
    assert_null(environment_find(scene->copy, SLICE("run_1")));
    assert_same_memory(scene);
    assert_int_equal(scene->copy->generation, 1);
}

/* The positions of a database that other processes write to are those of the last recount. */
static struct {
    const struct store_ops *real;
    struct store_ops ops;
    struct store_position known;
    struct store_recount *recount;
    struct deferred ending;
    struct store *store;
} stale;

static struct store_position known_position(struct store *store, uint32_t env)
{
    return env == WORLD_ENV ? stale.known : stale.real->position(store, env);
}

static void end_recount(struct deferred *ending)
{
    (void)ending;
    stale.known = stale.real->position(stale.store, WORLD_ENV);
    stale.recount->done(stale.recount, STORE_OK);
}

static void begin_recount(struct store *store, struct store_recount *recount)
{
    (void)store;
    stale.recount = recount;
    loop_defer(((struct replication_scene *)stale.store->owner)->world->loop,
               &stale.ending);
}

static void use_stale_positions(struct replication_scene *scene)
{
    struct store *store = scene->world->store;
    store->owner = scene;
    stale.store = store;
    stale.real = store->ops;
    stale.ops = *store->ops;
    stale.ops.position = known_position;
    stale.ops.recount = begin_recount;
    stale.known = store->ops->position(store, WORLD_ENV);
    stale.ending.fn = end_recount;
    list_init(&stale.ending.link);
    store->ops = &stale.ops;
}

static void retention_is_noticed_although_nothing_has_changed(void **state)
{
    struct replication_scene *scene = *state;
    create(scene->world, "run_1", "a");
    create(scene->world, "run_2", "a");
    scene_connect(scene);
    finish_run(scene->world, "run_1", 10);
    scene_pass(scene, 0);
    assert_non_null(environment_find(scene->copy, SLICE("run_1")));
    scene_disconnect(scene);
    use_stale_positions(scene);
    scene_purge(scene);
    scene_connect(scene);
    assert_true(is_trusted(scene));
    assert_null(environment_find(scene->copy, SLICE("run_1")));
    assert_same_memory(scene);
    scene->world->store->ops = stale.real;
}

/* As when the gateway takes the lead: the database has more than the last leader sent. */
static void memory_is_completed_without_a_leader(void **state)
{
    struct replication_scene *scene = *state;
    create(scene->world, "run_1", "a");
    scene_connect(scene);
    scene_disconnect(scene);
    change(scene->world, "run_1", 2);
    create(scene->world, "run_2", "a");
    replica_load(&scene->replica);
    assert_false(is_trusted(scene));
    scene_pass(scene, 0);
    assert_int_equal(scene->loads, 1);
    assert_same_memory(scene);
    assert_false(is_trusted(scene)); /* leading is what its owner has to know */
    assert_int_equal(scene->copy->generation, 1);
}

static void load_that_is_given_up_calls_nothing(void **state)
{
    struct replication_scene *scene = *state;
    create(scene->world, "run_1", "a");
    fake_store_set_delay(scene->world->fake, 0, 50);
    replica_load(&scene->replica);
    replica_disconnected(&scene->replica);
    for (int i = 0; i < 10; i++)
        scene_pass(scene, 50);
    assert_int_equal(scene->loads, 0);
    assert_true(replica_is_idle(&scene->replica));
}

/* ---- trust ---- */

static void trust_counts_from_the_ask(void **state)
{
    struct replication_scene *scene = *state;
    scene_connect(scene);
    assert_int_equal(replica_left_ms(&scene->replica), LEFT_MS);
    world_pass(scene->world, REPLICA_ASK_MS); /* asks */
    world_pass(scene->world, 1000);
    assert_int_equal(replica_left_ms(&scene->replica), LEFT_MS - REPLICA_ASK_MS - 1000);
    scene_deliver(scene); /* the response to the first of the two asks is 1,000 ms late */
    assert_true(replica_left_ms(&scene->replica) <= LEFT_MS);
    scene_drop_all(scene);
    scene->left_ms = 0; /* no more beats */
    world_pass(scene->world, LEFT_MS);
    scene_deliver(scene);
    assert_false(is_trusted(scene));
}

static void late_beat_does_not_prolong_trust_by_its_delay(void **state)
{
    struct replication_scene *scene = *state;
    scene_connect(scene);
    world_pass(scene->world, REPLICA_ASK_MS);
    scene_drop_first(&scene->to_leader);
    uint64_t question = replica_ask(&scene->replica);
    world_pass(scene->world, 200);
    scene_deliver(scene);
    assert_int_equal(scene->replica.answered, question);
    assert_int_equal(replica_left_ms(&scene->replica), LEFT_MS - 200);
}

static void each_answer_is_reported(void **state)
{
    struct replication_scene *scene = *state;
    scene_connect(scene);
    unsigned before = scene->answers;
    uint64_t question = replica_ask(&scene->replica);
    assert_int_equal(scene->answers, before);
    scene_deliver(scene);
    assert_int_equal(scene->answers, before + 1);
    assert_int_equal(scene->replica.answered, question);
}

static void leader_in_doubt_sends_no_beats(void **state)
{
    struct replication_scene *scene = *state;
    scene_connect(scene);
    scene->left_ms = 0;
    replica_ask(&scene->replica);
    struct sent_frame *ask = container_of(scene->to_leader.next, struct sent_frame, link);
    source_receive(&scene->source, &scene->follower, &ask->frame);
    assert_true(list_empty(&scene->to_follower));
    for (int i = 0; i < 2 * LEFT_MS / REPLICA_ASK_MS; i++)
        scene_pass(scene, REPLICA_ASK_MS);
    assert_false(is_trusted(scene));
    assert_string_equal(scene->ended, "");
    create(scene->world, "run_1", "a"); /* what it applies is true all the same */
    scene_pass(scene, 10);
    assert_same_memory(scene);
    scene->left_ms = LEFT_MS;
    scene_pass(scene, REPLICA_ASK_MS);
    assert_true(is_trusted(scene));
}

static void leader_in_doubt_accepts_no_follower(void **state)
{
    struct replication_scene *scene = *state;
    scene->left_ms = 0;
    scene_connect(scene);
    assert_string_equal(scene->ended, "this leader is in doubt");
    assert_false(scene->follower.is_on);
}

static void silent_leader_loses_its_follower(void **state)
{
    struct replication_scene *scene = *state;
    scene_connect(scene);
    for (int i = 0; i < REPLICA_SILENCE_MS / REPLICA_ASK_MS; i++)
        world_pass(scene->world, REPLICA_ASK_MS);
    assert_string_equal(scene->ended, "the leader does not answer");
    assert_int_equal(scene->replica.state, REPLICA_OFF);
}

/* ---- frames that must not be taken ---- */

static void earlier_lead_is_not_followed(void **state)
{
    struct replication_scene *scene = *state;
    scene_connect(scene);
    scene->source.options.head.term--;
    scene_connect(scene);
    assert_string_equal(scene->ended, "an earlier lead");
    scene->source.options.head.term += 2;
    scene_connect(scene);
    assert_true(is_trusted(scene));
}

static void gap_ends_the_connection(void **state)
{
    struct replication_scene *scene = *state;
    scene_connect(scene);
    create(scene->world, "run_1", "a");
    scene_drop_first(&scene->to_follower);
    create(scene->world, "run_2", "a");
    scene_pass(scene, 0);
    assert_string_equal(scene->ended, "the stream has a gap");
    scene_connect(scene);
    assert_same_memory(scene);
}

static void frame_before_the_positions_ends_the_connection(void **state)
{
    struct replication_scene *scene = *state;
    struct repl_frame frame = { .kind = REPL_SUM };
    replica_connected(&scene->replica);
    replica_receive(&scene->replica, &frame, 1);
    assert_string_equal(scene->ended, "an unexpected frame before the positions");
}

static void versions_without_a_common_one_are_refused(void **state)
{
    struct replication_scene *scene = *state;
    struct repl_frame frame = {
        .kind = REPL_HELLO,
        .hello = { .least = REPL_VERSION + 1, .newest = REPL_VERSION + 2, .gateway = 2 }
    };
    source_receive(&scene->source, &scene->follower, &frame);
    assert_string_equal(scene->ended, "no version of replication in common");
    assert_false(scene->follower.is_on);
}

/* ---- sums ---- */

static void wait_for_sums(struct replication_scene *scene)
{
    for (int i = 0; i < 11; i++)
        scene_pass(scene, 1000);
}

static unsigned count_sums(const struct replication_scene *scene)
{
    unsigned count = 0;
    list_each (link, &scene->to_follower)
        count += container_of(link, struct sent_frame, link)->frame.kind == REPL_SUM;
    return count;
}

static void sums_are_sent_of_environments_that_have_changed(void **state)
{
    struct replication_scene *scene = *state;
    create(scene->world, "run_1", "a");
    scene_connect(scene);
    world_pass(scene->world, 10000);
    assert_int_equal(count_sums(scene), 1);
    world_pass(scene->world, 10000);
    assert_int_equal(count_sums(scene), 1);
    change(scene->world, "run_1", 2);
    world_pass(scene->world, 10000);
    assert_int_equal(count_sums(scene), 2);
    scene_connect(scene); /* a new follower has compared nothing */
    world_pass(scene->world, 10000);
    assert_int_equal(count_sums(scene), 1);
}

static void equal_sums_are_silent(void **state)
{
    struct replication_scene *scene = *state;
    create(scene->world, "run_1", "a");
    scene_connect(scene);
    wait_for_sums(scene);
    change(scene->world, "run_1", 2);
    wait_for_sums(scene);
    assert_same_memory(scene);
    assert_int_equal(scene->replica.differences, 0);
}

static void environment_that_differs_is_loaded_again(void **state)
{
    struct replication_scene *scene = *state;
    create(scene->world, "run_1", "a");
    scene_connect(scene);
    assert_true(environment_find(scene->copy, SLICE("run_1")) != NULL);
    scene->copy->sum++;
    wait_for_sums(scene);
    assert_int_equal(scene->replica.differences, 1);
    assert_string_equal(scene->ended, "memory differs from the leader's");
    scene->copy->sum--; /* so that clearing leaves zero */
    scene_connect(scene);
    assert_int_equal(scene->copy->generation, 2);
    assert_same_memory(scene);
    wait_for_sums(scene);
    assert_int_equal(scene->replica.differences, 1);
}

#define TEST(name)                                                                         \
    cmocka_unit_test_setup_teardown(name, open_replication_scene, close_replication_scene)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(follower_has_what_was_before_and_what_comes),
        TEST(packets_travel_only_in_the_change_that_wrote_them),
        TEST(change_of_an_evicted_run_comes_with_its_state_before),
        TEST(next_connection_continues_from_memory),
        TEST(leader_knows_how_far_a_follower_is_behind),
        TEST(frames_wait_while_the_accounts_are_read),
        TEST(too_many_waiting_bytes_end_the_connection),
        TEST(short_frames_count_with_the_memory_that_they_take),
        TEST(runs_that_are_caught_up_stay_within_the_budget),
        TEST(newest_run_that_is_caught_up_is_noted),
        TEST(memory_ahead_of_the_leader_is_not_shown),
        TEST(retention_removes_runs_from_memory),
        TEST(memory_below_the_purged_position_is_loaded_again),
        TEST(environment_that_the_leader_has_dropped_leaves_memory),
        TEST(environment_that_is_dropped_meanwhile_leaves_memory),
        TEST(memory_is_loaded_without_a_leader),
        TEST(memory_is_completed_without_a_leader),
        TEST(retention_is_completed_without_a_leader),
        TEST(retention_is_noticed_although_nothing_has_changed),
        TEST(load_that_is_given_up_calls_nothing),
        TEST(trust_counts_from_the_ask),
        TEST(late_beat_does_not_prolong_trust_by_its_delay),
        TEST(each_answer_is_reported),
        TEST(leader_in_doubt_sends_no_beats),
        TEST(leader_in_doubt_accepts_no_follower),
        TEST(silent_leader_loses_its_follower),
        TEST(earlier_lead_is_not_followed),
        TEST(gap_ends_the_connection),
        TEST(frame_before_the_positions_ends_the_connection),
        TEST(versions_without_a_common_one_are_refused),
        TEST(sums_are_sent_of_environments_that_have_changed),
        TEST(equal_sums_are_silent),
        TEST(environment_that_differs_is_loaded_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
