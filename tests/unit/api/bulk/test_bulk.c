/* A bulk action finds its runs, however slow the store, and handles each once. */
#include "tests/support/world/unit.h"

#include <stdlib.h>

#include "api/bulk/bulk.h"
#include "api/runs/filter_words.h"
#include "base/mem.h"
#include "core/engine/run_commands.h"
#include "tests/support/world/world.h"

static struct bulk_action *read_action(const char *text, enum err expected,
                                       struct failure *why)
{
    struct bulk_action *action = bulk_action_create();
    json_t *body = json_loads(text, 0, NULL);
    assert_non_null(body);
    text_make_id("bulk", world_start_ms, action->id);
    action->created_at = world_start_ms;
    assert_int_equal(bulk_selection_read(body, VOCABULARY_B, world_start_ms, action, why),
                     expected);
    json_decref(body);
    return action;
}

/* ---- selection ---- */

static void ids_are_sorted_newest_first_without_duplicates(void **state)
{
    (void)state;
    char ids[2][ID_MAX];
    struct failure why;
    struct bulk_action *action = read_action(
        "{\"runIds\":[\"run_1aaaaaaaaaaaaaaaaaaaa\",\"run_3aaaaaaaaaaaaaaaaaaaa\","
        "\"run_1aaaaaaaaaaaaaaaaaaaa\",\"run_2aaaaaaaaaaaaaaaaaaaa\"]}",
        OK, &why);
    assert_int_equal(action->progress.total, 3);
    assert_true(action->progress.counted);
    assert_int_equal(bulk_selection_ids(action, "", ids, 2), 2);
    assert_string_equal(ids[0], "run_3aaaaaaaaaaaaaaaaaaaa");
    assert_string_equal(ids[1], "run_2aaaaaaaaaaaaaaaaaaaa");
    assert_int_equal(bulk_selection_ids(action, ids[1], ids, 2), 1);
    assert_string_equal(ids[0], "run_1aaaaaaaaaaaaaaaaaaaa");
    assert_int_equal(bulk_selection_ids(action, ids[0], ids, 2), 0);
    bulk_action_destroy(action);
}

static void filter_is_read_with_its_values_and_times(void **state)
{
    (void)state;
    char ids[1][ID_MAX];
    struct failure why;
    struct bulk_action *action = read_action(
        "{\"filter\":{\"tag\":[\"a\",\" b "
        "\"],\"status\":\"QUEUED\",\"isTest\":true,\"rootOnly\":true,"
        "\"queue\":[{\"type\":\"task\",\"name\":\"t\"},{\"type\":\"custom\",\"name\":\"c\"}"
        "],"
        "\"period\":\"1h\"}}",
        OK, &why);
    assert_int_equal(action->from, world_start_ms - 3600 * 1000);
    assert_int_equal(action->until, world_start_ms);
    assert_int_equal(bulk_selection_ids(action, "", ids, 1), -1);

    struct filter_words *open = bulk_selection_open(action);
    const struct run_filter *filter = &open->query.filter;
    assert_int_equal(filter->tag_count, 2);
    assert_true(slice_is(filter->tags[1], "b"));
    assert_int_equal(filter->queue_count, 2);
    assert_true(slice_is(filter->queues[0], "task/t"));
    assert_true(slice_is(filter->queues[1], "c"));
    assert_int_equal(filter->is_test, 1);
    assert_true(filter->parent.ptr && !filter->parent.len);
    assert_int_equal(filter->statuses, run_statuses_named(SLICE("QUEUED"), VOCABULARY_B));
    assert_int_equal(filter->created_from, 0);
    filter_words_close(open);
    bulk_action_destroy(action);
}

static void bulk_document_is_read_as_it_was_written(void **state)
{
    (void)state;
    struct failure why;
    struct bulk_action *action = read_action("{\"filter\":{\"tag\":\"a\"}}", OK, &why);
    action->type = BULK_REPLAY;
    action->name = bytes_create(SLICE("a \"name\""));
    action->region = bytes_create(SLICE("eu"));
    action->progress.success = 7;
    snprintf(action->progress.after, ID_MAX, "run_x");
    struct bytes *body = bulk_write(action, &action->progress);
    struct bulk_action *read = bulk_action_create();
    assert_int_equal(bulk_read(bytes_slice(body), read, &why), OK);
    struct bytes *again = bulk_write(read, &read->progress);
    assert_string_equal(again->data, body->data);
    assert_string_equal(read->progress.after, "run_x");
    assert_true(slice_is(bytes_slice(read->name), "a \"name\""));
    bytes_unref(again);
    bytes_unref(body);
    bulk_action_destroy(action);
    bulk_action_destroy(read);

    static const char *const damaged[] = { "", "{}", "[", "{\"id\":\"b\",\"after\":\"\"}" };
    for (size_t i = 0; i < sizeof(damaged) / sizeof(damaged[0]); i++) {
        read = bulk_action_create();
        assert_int_equal(bulk_read(slice_of(damaged[i]), read, &why), ERR_INVALID);
        bulk_action_destroy(read);
    }
}

/* ---- the work ---- */

enum { DAY_MS = 24 * 3600 * 1000 };

/* Wraps the fake store: a list over more than a day fails because it is too slow. */
struct slow_store {
    struct store store;
    struct store *fake;
    struct loop *loop;
    struct deferred deferred;
    struct store_read *late;
    unsigned refused, lists;
};

static void answer_slow(struct deferred *deferred)
{
    struct slow_store *slow = container_of(deferred, struct slow_store, deferred);
    slow->late->done(slow->late, STORE_SLOW);
}

static struct slow_store *slow_of(struct store *store)
{
    return container_of(store, struct slow_store, store);
}

static bool is_slow(struct slow_store *slow, struct store_read *req)
{
    const struct run_filter *filter = &container_of(req, struct store_list, read)->filter;
    if (req->kind != READ_LIST)
        return false;
    slow->lists++;
    return filter->created_to - filter->created_from > DAY_MS;
}

static void slow_read(struct store *store, struct store_read *req)
{
    struct slow_store *slow = slow_of(store);
    if (!is_slow(slow, req)) {
        slow->fake->ops->read(slow->fake, req);
        return;
    }
    slow->refused++;
    slow->late = req;
    slow->deferred.fn = answer_slow;
    loop_defer(slow->loop, &slow->deferred);
}

static void slow_commit(struct store *store, struct store_commit *req)
{
    slow_of(store)->fake->ops->commit(slow_of(store)->fake, req);
}

static struct store_position slow_position(struct store *store, uint32_t env)
{
    return slow_of(store)->fake->ops->position(slow_of(store)->fake, env);
}

static const struct store_ops slow_ops = {
    .name = "slow", .commit = slow_commit, .read = slow_read, .position = slow_position
};
static struct slow_store slow;

static struct store *put_before(struct world *world)
{
    slow =
        (struct slow_store){ .fake = fake_store_store(world->fake), .loop = world->loop };
    slow.store = *slow.fake;
    slow.store.ops = &slow_ops;
    list_init(&slow.deferred.link);
    return &slow.store;
}

/* Begins as the call does: the document first. */
struct beginning {
    struct document_write write;
    bool is_written;
};

static void on_written(struct document_write *write, enum err status)
{
    assert_int_equal(status, OK);
    container_of(write, struct beginning, write)->is_written = true;
}

static struct bulk_action *begin(struct world *world, struct bulks *bulks, const char *body)
{
    struct failure why;
    struct beginning beginning = { 0 };
    struct bulk_action *action = read_action(body, OK, &why);
    action->until = action->progress.to = loop_wall_ms(world->loop);
    struct bulk_queue *queue = bulks_of(bulks, world->env);
    assert_int_equal(bulk_queue_reserve(queue, &why), OK);
    struct bytes *name = bytes_create(slice_of(action->id));
    struct bytes *text = bulk_write(action, &action->progress);
    document_write_begin(world->engine, WORLD_ENV, DOC_BULK, name, text, 0,
                         &beginning.write, on_written);
    bytes_unref(name);
    bytes_unref(text);
    world_settle(world);
    assert_true(beginning.is_written);
    action->version = 1;
    bulk_queue_add(queue, action);
    return action;
}

static void slow_search_adapts_its_time_windows(void **state)
{
    (void)state;
    struct world *world = world_create(&(struct world_options){ .wrap = put_before });
    struct bulks *bulks = bulks_create(world->engine);

    create_many(world, 120, "old");
    struct bulk_action *action =
        begin(world, bulks, "{\"filter\":{\"tag\":\"old\",\"period\":\"30d\"}}");
    for (int i = 0; i < 400 && action->progress.status == BULK_PENDING; i++)
        world_pass(world, 1);
    assert_int_equal(action->progress.status, BULK_COMPLETED);
    assert_int_equal(action->progress.total, 120);
    assert_int_equal(action->progress.success, 120);
    assert_in_range(slow.refused, 2, 60); /* windows grow, are rejected, and shrink */
    assert_in_range(slow.lists, 30, 300);
    bulks_stop(bulks, NULL);
    bulks_destroy(bulks);
    world_destroy(world);
}

static void bulk_action_waits_for_a_full_disk(void **state)
{
    (void)state;
    struct world *world = world_create(NULL);
    struct bulks *bulks = bulks_create(world->engine);

    create_many(world, 60, "x");
    struct bulk_action *action = begin(world, bulks, "{\"filter\":{\"tag\":\"x\"}}");
    fake_store_fail_with(world->fake, STORE_NO_SPACE);
    *fake_store_fault(world->fake) = (struct fault){ .countdown = 20, .repeat = 30 };
    for (int i = 0; i < 100 && action->progress.status == BULK_PENDING; i++)
        world_pass(world, 100);
    assert_int_equal(action->progress.status, BULK_COMPLETED);
    assert_int_equal(action->progress.success, 60);
    assert_int_equal(action->progress.failure, 0);
    bulks_stop(bulks, NULL);
    bulks_destroy(bulks);
    world_destroy(world);
}

static void stopped_bulk_action_ends_without_leaks(void **state)
{
    (void)state;
    for (unsigned turns = 0; turns < 40; turns++) {
        struct world *world = world_create(NULL);
        struct bulks *bulks = bulks_create(world->engine);
        create_many(world, 110, "x");
        struct bulk_action *action = begin(world, bulks, "{\"filter\":{\"tag\":\"x\"}}");
        action->type = turns % 2 ? BULK_REPLAY : BULK_CANCEL;
        for (unsigned i = 0; i < turns; i++)
            loop_turn(world->loop, 1);
        bulks_stop(bulks, NULL);
        bulks_destroy(bulks);
        world_settle(world);
        world_destroy(world); /* asserts that nothing leaks */
    }
}

static unsigned told;

static void on_told(struct bulk_abort *abort, const struct bulk_action *action)
{
    assert_null(action);
    assert_true(list_empty(&abort->link));
    told++;
}

static void stop_notifies_waiting_calls_over_several_turns(void **state)
{
    static struct bulk_abort aborts[100];
    (void)state;
    struct world *world = world_create(NULL);
    struct bulks *bulks = bulks_create(world->engine);
    struct bulk_action *action = begin(world, bulks, "{\"filter\":{\"tag\":\"x\"}}");
    for (size_t i = 0; i < 100; i++) {
        aborts[i] = (struct bulk_abort){ .done = on_told };
        bulk_queue_abort(bulks_of(bulks, world->env), action, &aborts[i]);
    }
    loop_set_budget(world->loop, 0);
    for (bool all = false; !all;) {
        unsigned before = told;
        struct timeslice timeslice = loop_timeslice(world->loop);
        all = bulks_stop(bulks, &timeslice);
        assert_in_range(told - before, 1, 20);
    }
    assert_int_equal(told, 100);
    loop_set_budget(world->loop, 1000);
    bulks_destroy(bulks);
    world_settle(world);
    world_destroy(world);
}

static void preview_branches_share_the_pending_actions_of_their_project(void **state)
{
    enum { BRANCHES = 200, FIRST = 10 };
    (void)state;
    struct world *world = world_create(NULL);
    struct bulks *bulks = bulks_create(world->engine);
    struct environment *branches[BRANCHES];
    struct quota stored = { 0 }, project = { 0 }, together = { .outer = &project };
    struct failure why;
    int taken = 0;
    for (uint32_t i = 0; i < BRANCHES; i++) {
        branches[i] = engine_add_environment(world->engine, FIRST + i, "branch", false);
        branches[i]->project_unfinished = &together;
        engine_join_stored(world->engine, FIRST + i, &stored);
        taken += bulk_queue_reserve(bulks_of(bulks, branches[i]), &why) == OK;
    }
    assert_int_equal(taken, BULK_PROJECT_PENDING_MAX / 2);
    assert_non_null(strstr(why.text, "The preview branches of the project have too many"));
    engine_join_stored(world->engine, WORLD_ENV, &stored);
    for (int i = 0; i < BULK_PENDING_MAX; i++)
        assert_int_equal(bulk_queue_reserve(bulks_of(bulks, world->env), &why), OK);
    bulk_queue_give_up(bulks_of(bulks, branches[0]));
    assert_int_equal(bulk_queue_reserve(bulks_of(bulks, branches[BRANCHES - 1]), &why), OK);
    bulks_stop(bulks, NULL);
    bulks_destroy(bulks);
    world_destroy(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_are_sorted_newest_first_without_duplicates),
        cmocka_unit_test(filter_is_read_with_its_values_and_times),
        cmocka_unit_test(bulk_document_is_read_as_it_was_written),
        cmocka_unit_test(slow_search_adapts_its_time_windows),
        cmocka_unit_test(bulk_action_waits_for_a_full_disk),
        cmocka_unit_test(stop_notifies_waiting_calls_over_several_turns),
        cmocka_unit_test(stopped_bulk_action_ends_without_leaks),
        cmocka_unit_test(preview_branches_share_the_pending_actions_of_their_project),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
