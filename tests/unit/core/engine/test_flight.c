/* Commands on several runs are one commit: all of it is stored, or nothing. */
#include "tests/support/world/unit.h"

#include <stdio.h>

#include "base/mem.h"
#include "tests/support/world/calls.h"

static const char counting[] = "[{\"type\":\"increment\",\"key\":\"n\",\"value\":1}]";

/* A root, its child and a grandchild. */
struct family {
    struct world *world;
    char root[ID_MAX], middle[ID_MAX], leaf[ID_MAX];
};

static struct family found(struct world *world)
{
    struct family family = { .world = world };
    memcpy(family.root, trigger(world, (struct wish){ 0 }).id, ID_MAX);
    memcpy(family.middle, trigger(world, (struct wish){ .parent = family.root }).id,
           ID_MAX);
    memcpy(family.leaf, trigger(world, (struct wish){ .parent = family.middle }).id,
           ID_MAX);
    return family;
}

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

/* ---- changes of several runs ---- */

enum { GENERATIONS = 3 };

struct counts {
    struct change_metadata changes[GENERATIONS];
    bool done;
    enum err status;
};

static void on_counted(struct command *command, enum err status)
{
    struct counts *counts = container_of(command, struct counts, changes[0].command);
    counts->done = true;
    counts->status = status;
}

/* Counts in each of these runs; NULL ends the list. */
static void count_in(struct world *world, struct counts *counts, const char *request,
                     const char *const *ids)
{
    *counts = (struct counts){ 0 };
    counts->changes[0].request_id = request ? slice_of(request) : (struct slice){ 0 };
    for (int i = 0; i < GENERATIONS && ids[i]; i++) {
        counts->changes[i].operations = slice_of(counting);
        if (i)
            run_join_metadata(&counts->changes[0].command, slice_of(ids[i]),
                              &counts->changes[i]);
        else
            run_change_metadata(world->engine, world->env, slice_of(ids[0]),
                                &counts->changes[0], on_counted);
    }
}

static void wait_until_counted(struct world *world, const struct counts *counts)
{
    for (int turn = 0; !counts->done; turn++) {
        assert_true(turn < 1000);
        loop_turn(world->loop, 1);
    }
}

static void count_upwards(const struct family *family, struct counts *counts,
                          const char *request)
{
    const char *ids[GENERATIONS] = { family->leaf, family->middle, family->root };
    count_in(family->world, counts, request, ids);
}

static unsigned count_of(struct world *world, const char *id)
{
    unsigned count = 0;
    const struct run *run = fake_store_run(world->fake, WORLD_ENV, id);
    if (run->metadata)
        sscanf(run->metadata->data, "{\"n\":%u}", &count);
    return count;
}

static void assert_counts(const struct family *family, unsigned leaf, unsigned middle,
                          unsigned root)
{
    assert_int_equal(count_of(family->world, family->leaf), leaf);
    assert_int_equal(count_of(family->world, family->middle), middle);
    assert_int_equal(count_of(family->world, family->root), root);
}

static void a_run_its_parent_and_its_root_change_in_one_commit(void **state)
{
    struct world *world = *state;
    struct family family = found(world);
    struct counts counts;
    uint64_t seq = world->env->applied;
    count_upwards(&family, &counts, NULL);
    wait_until_counted(world, &counts);
    assert_int_equal(counts.status, OK);
    for (unsigned i = 0; i < GENERATIONS; i++)
        assert_int_equal(counts.changes[i].command.seq, seq + 1 + i);
    assert_counts(&family, 1, 1, 1);
}

static void failed_commit_changes_none_of_the_runs(void **state)
{
    struct world *world = *state;
    struct family family = found(world);
    struct counts counts;
    *fake_store_fault(world->fake) = (struct fault){ .countdown = 1 };
    count_upwards(&family, &counts, "q1");
    wait_until_counted(world, &counts);
    assert_int_equal(counts.status, ERR_STORE);
    assert_counts(&family, 0, 0, 0);
    count_upwards(&family, &counts, "q1");
    wait_until_counted(world, &counts);
    assert_int_equal(counts.status, OK);
    assert_counts(&family, 1, 1, 1);
}

static void repeated_request_counts_once_in_all_runs(void **state)
{
    struct world *world = *state;
    struct family family = found(world);
    struct counts counts;
    for (int i = 0; i < 3; i++) {
        count_upwards(&family, &counts, "q1");
        wait_until_counted(world, &counts);
        assert_int_equal(counts.status, OK);
        assert_int_equal(counts.changes[0].command.seq > 0, i == 0);
        assert_counts(&family, 1, 1, 1);
    }
    count_upwards(&family, &counts, "q2");
    wait_until_counted(world, &counts);
    assert_counts(&family, 2, 2, 2);
}

static void repeated_request_is_recognized_for_an_hour(void **state)
{
    static const char *const requests[] = { "q1", "q2", "q1", "q2", "q1" };
    struct world *world = *state;
    struct family family = found(world);
    struct counts counts;
    for (int i = 0; i < 5; i++) {
        count_upwards(&family, &counts, requests[i]);
        wait_until_counted(world, &counts);
        assert_int_equal(counts.status, OK);
        assert_int_equal(counts.changes[0].command.is_repeated, i > 1);
        assert_int_equal(counts.changes[0].command.seq > 0, i < 2);
    }
    assert_counts(&family, 2, 2, 2);
    world_pass(world, 3600 * 1000 + 1);
    count_upwards(&family, &counts, "q1");
    wait_until_counted(world, &counts);
    assert_counts(&family, 3, 3, 3);
}

static void request_id_belongs_to_its_run(void **state)
{
    struct world *world = *state;
    struct family family = found(world);
    struct counts counts;
    for (int i = 0; i < 2; i++) {
        const char *ids[GENERATIONS] = { i ? family.leaf : family.middle };
        count_in(world, &counts, "q1", ids);
        wait_until_counted(world, &counts);
    }
    assert_counts(&family, 1, 1, 0);
}

/* In one commit, two commands name the same request, and one names an earlier request. */
static void a_repeated_request_drops_only_its_own_changes(void **state)
{
    static const char *const requests[] = { "q1", "q2", NULL, "q3", "q3", "q4" };
    static const bool is_repeated[] = { true, false, false, false, true, false };
    struct world *world = *state;
    struct family family = found(world);
    struct counts earlier, counts[6];
    const char *root_alone[GENERATIONS] = { family.root };
    count_upwards(&family, &earlier, "q1");
    wait_until_counted(world, &earlier);
    for (int i = 0; i < 6; i++)
        if (i < 5)
            count_upwards(&family, &counts[i], requests[i]);
        else
            count_in(world, &counts[i], requests[i], root_alone);
    for (int i = 0; i < 6; i++) {
        wait_until_counted(world, &counts[i]);
        assert_int_equal(counts[i].status, OK);
        assert_int_equal(counts[i].changes[0].command.is_repeated, is_repeated[i]);
        assert_int_equal(counts[i].changes[0].command.seq > 0, !is_repeated[i]);
    }
    assert_counts(&family, 4, 4, 5);
}

/* The first of two commands for one request must not be answered before it is stored. */
static void repeated_request_fails_with_its_commit(void **state)
{
    struct world *world = *state;
    struct family family = found(world);
    struct counts counts[2];
    *fake_store_fault(world->fake) = (struct fault){ .countdown = 2 };
    for (int i = 0; i < 2; i++)
        count_upwards(&family, &counts[i], "q1");
    for (int i = 0; i < 2; i++) {
        wait_until_counted(world, &counts[i]);
        assert_int_equal(counts[i].status, ERR_STORE);
    }
    assert_counts(&family, 0, 0, 0);
}

/* The second command waits for the commit after that of the first, which fails. */
static void request_counts_if_the_one_that_it_repeats_has_failed(void **state)
{
    struct world *world = *state;
    struct family family = found(world);
    struct counts counts[2];
    fake_store_set_delay(world->fake, 10, 10);
    *fake_store_fault(world->fake) = (struct fault){ .countdown = 2 };
    for (int i = 0; i < 2; i++)
        count_upwards(&family, &counts[i], "q1");
    loop_turn(world->loop, 0); /* both are decided */
    loop_set_budget(world->loop, 0);
    for (int i = 0; i < 2; i++)
        wait_until_counted(world, &counts[i]);
    assert_int_equal(counts[0].status, ERR_STORE);
    assert_int_equal(counts[1].status, OK);
    assert_false(counts[1].changes[0].command.is_repeated);
    assert_counts(&family, 1, 1, 1);
}

static struct buf setting(const char *key, size_t bytes)
{
    struct buf operations = { 0 };
    buf_print(&operations, "[{\"type\":\"set\",\"key\":\"%s\",\"value\":\"", key);
    for (size_t i = 0; i < bytes; i++)
        buf_add_char(&operations, 'x');
    buf_add_text(&operations, "\"}]");
    return operations;
}

static void set_in(struct world *world, struct counts *counts, const char *request,
                   const char *id, const struct buf *operations)
{
    *counts = (struct counts){ 0 };
    counts->changes[0].request_id = slice_of(request);
    counts->changes[0].operations = buf_slice(operations);
    run_change_metadata(world->engine, world->env, slice_of(id), &counts->changes[0],
                        on_counted);
}

/* The new value is too large only together with that of a repeated request. It fits when
 * the repeated one is dropped; its change of the parent is decided again with it. */
static void change_is_decided_again_without_the_repeated_request(void **state)
{
    struct world *world = *state;
    struct family family = found(world);
    struct counts repeated, counts;
    struct buf large = setting("a", 200 * 1000), small = setting("a", 1),
               other = setting("b", 100 * 1000);
    set_in(world, &repeated, "q1", family.leaf, &large);
    wait_until_counted(world, &repeated);
    set_in(world, &repeated, "q2", family.leaf, &small);
    wait_until_counted(world, &repeated);

    set_in(world, &repeated, "q1", family.leaf, &large);
    set_in(world, &counts, "q3", family.leaf, &other);
    counts.changes[1].operations = slice_of(counting);
    run_join_metadata(&counts.changes[0].command, slice_of(family.middle),
                      &counts.changes[1]);
    wait_until_counted(world, &counts);
    assert_true(repeated.done);
    assert_int_equal(counts.status, OK);
    assert_int_equal(count_of(world, family.middle), 1);
    assert_in_range(fake_store_run(world->fake, WORLD_ENV, family.leaf)->metadata->len,
                    100 * 1000, 101 * 1000);
    buf_finish(&large);
    buf_finish(&small);
    buf_finish(&other);
}

/* All of them count at once, at the store's own speed; none waits forever. */
static void concurrent_changes_of_relatives_wait_for_each_other(void **state)
{
    struct world *world = *state;
    struct family family = found(world);
    struct counts counts[12];
    const char *chains[][GENERATIONS] = {
        { family.leaf, family.middle, family.root },
        { family.middle, family.root },
        { family.root },
        { family.leaf, family.root },
        { family.root, family.root }, /* its own parent and root: not other runs */
        { family.middle, family.root, family.root },
    };
    fake_store_set_delay(world->fake, 10, 10);
    for (unsigned i = 0; i < 12; i++) {
        count_in(world, &counts[i], NULL, chains[i % 6]);
        if (i % 5 == 4)
            world_settle(world); /* commits are in flight */
    }
    for (unsigned i = 0; i < 12; i++) {
        wait_until_counted(world, &counts[i]);
        assert_int_equal(counts[i].status, OK);
    }
    fake_store_set_delay(world->fake, 0, 0);
    assert_counts(&family, 4, 6, 16);
}

/* The root is busy; its other child, the middle and the leaf queue for it, in this order.
 * By then the leaf's command has borrowed the middle. So the other child is committed with
 * the leaf, and with the middle only as a part of the leaf's command. */
static void borrowed_run_is_committed_with_its_borrower(void **state)
{
    struct world *world = *state;
    struct family family = found(world);
    struct triggered other = trigger(world, (struct wish){ .parent = family.root });
    struct counts counts[4];
    const char *chains[][GENERATIONS] = { { family.root },
                                          { other.id, family.root },
                                          { family.middle, family.root },
                                          { family.leaf, family.middle, family.root } };
    fake_store_set_delay(world->fake, 10, 10);
    for (unsigned i = 0; i < 4; i++) {
        count_in(world, &counts[i], NULL, chains[i]);
        loop_turn(world->loop, 0);
    }
    for (unsigned i = 0; i < 4; i++) {
        wait_until_counted(world, &counts[i]);
        assert_int_equal(counts[i].status, OK);
    }
    fake_store_set_delay(world->fake, 0, 0);
    assert_counts(&family, 1, 2, 4);
    assert_int_equal(count_of(world, other.id), 1);
}

/* ---- many at once ---- */

enum { CHILDREN = 50, COMMIT_MS = 10 };

struct siblings {
    char parents[2][ID_MAX], root[ID_MAX];
    char ids[CHILDREN][ID_MAX];
    struct counts counts[CHILDREN];
};

/* Children alternate between the two parents. */
static struct siblings *bear(struct world *world)
{
    struct siblings *all = mem_new(struct siblings);
    memcpy(all->root, trigger(world, (struct wish){ 0 }).id, ID_MAX);
    for (int i = 0; i < 2; i++)
        memcpy(all->parents[i], trigger(world, (struct wish){ .parent = all->root }).id,
               ID_MAX);
    for (int i = 0; i < CHILDREN; i++)
        memcpy(all->ids[i],
               trigger(world, (struct wish){ .parent = all->parents[i % 2] }).id, ID_MAX);
    fake_store_set_delay(world->fake, COMMIT_MS, 0);
    return all;
}

static void all_count_upwards(struct world *world, struct siblings *all)
{
    for (int i = 0; i < CHILDREN; i++) {
        const char *ids[GENERATIONS] = { all->ids[i], all->parents[i % 2], all->root };
        count_in(world, &all->counts[i], NULL, ids);
    }
}

static void wait_for_commits(struct world *world, int commits)
{
    loop_turn(world->loop, 0);
    for (int i = 0; i < commits; i++) {
        loop_turn(world->loop, COMMIT_MS);
        loop_turn(world->loop, 0);
    }
}

/* The first one gets its parent and root before the others arrive. A second commit has the
 * rest; two more are allowed, because the order of queuing may vary. */
static void concurrent_changes_of_siblings_share_a_few_commits(void **state)
{
    struct world *world = *state;
    struct siblings *all = bear(world);
    all_count_upwards(world, all);
    wait_for_commits(world, 4);
    for (int i = 0; i < CHILDREN; i++) {
        assert_true(all->counts[i].done);
        assert_int_equal(all->counts[i].status, OK);
        assert_int_equal(count_of(world, all->ids[i]), 1);
        for (int k = 1; k < GENERATIONS; k++) /* each change has its own number */
            assert_int_equal(all->counts[i].changes[k].command.seq,
                             all->counts[i].changes[0].command.seq + k);
    }
    assert_int_equal(count_of(world, all->parents[0]), CHILDREN / 2);
    assert_int_equal(count_of(world, all->root), CHILDREN);
    free(all);
}

static void every_command_of_a_failed_commit_is_answered(void **state)
{
    struct world *world = *state;
    struct siblings *all = bear(world);
    *fake_store_fault(world->fake) = (struct fault){ .countdown = 1, .repeat = 3 };
    all_count_upwards(world, all);
    wait_for_commits(world, 4);
    for (int i = 0; i < CHILDREN; i++) {
        assert_true(all->counts[i].done);
        assert_int_equal(all->counts[i].status, ERR_STORE);
    }
    assert_int_equal(count_of(world, all->root), 0);
    *fake_store_fault(world->fake) = (struct fault){ 0 };
    all_count_upwards(world, all);
    wait_for_commits(world, 4);
    assert_int_equal(count_of(world, all->root), CHILDREN);
    free(all);
}

/* One command is handled per turn: the others wait, and none is lost. */
static void siblings_change_one_by_one_without_time_left(void **state)
{
    struct world *world = *state;
    struct siblings *all = bear(world);
    loop_set_budget(world->loop, 0);
    all_count_upwards(world, all);
    for (int i = 0; i < CHILDREN; i++)
        wait_until_counted(world, &all->counts[i]);
    assert_int_equal(count_of(world, all->root), CHILDREN);
    free(all);
}

static void missing_relative_is_skipped(void **state)
{
    struct world *world = *state;
    struct family family = found(world);
    struct counts counts;
    const char *ids[GENERATIONS] = { family.leaf, "run_gone", family.root };
    count_in(world, &counts, NULL, ids);
    wait_until_counted(world, &counts);
    assert_int_equal(counts.status, OK);
    assert_int_equal(counts.changes[1].command.seq, 0);
    assert_counts(&family, 1, 0, 1);
}

static void rejected_change_leaves_relatives_unchanged(void **state)
{
    struct world *world = *state;
    struct family family = found(world);
    struct counts counts;
    assert_int_equal(cancel(world, family.leaf), OK);
    world_pass(world, 3600 * 1000 + 1);
    count_upwards(&family, &counts, NULL);
    wait_until_counted(world, &counts);
    assert_int_equal(counts.status, ERR_RULE);
    assert_counts(&family, 0, 0, 0);
}

/* Parent and root have finished and left memory. */
static void relatives_that_are_only_in_the_store_are_loaded(void **state)
{
    struct world_options options = { .engine.memory = 1 };
    struct world *world = world_create(&options);
    (void)state;
    struct family family = found(world);
    struct counts counts;
    assert_int_equal(cancel(world, family.root), OK);
    world_settle(world);
    assert_null(environment_find(world->env, slice_of(family.root)));
    assert_null(environment_find(world->env, slice_of(family.leaf)));
    for (unsigned n = 1; n < 4; n++) {
        count_upwards(&family, &counts, NULL);
        wait_until_counted(world, &counts);
        assert_int_equal(counts.status, OK);
        assert_counts(&family, n, n, n);
    }
    world_destroy(world);
}

/* The store has the run before its trigger returns, and a client that listed it cancels it.
 * The trigger brings it into memory while the store reads it for the cancel. */
static void run_that_its_trigger_adds_meanwhile_is_not_loaded_again(void **state)
{
    struct world *world = *state;
    struct triggering triggering = { 0 };
    struct wish wish = { 0 };
    fake_store_set_delay(world->fake, 20, 14); /* stored after 10 ms, then read */
    assert_int_equal(trigger_all(world, &triggering, &wish, 1), OK);
    loop_turn(world->loop, 8);
    const char *id = triggering.items[0].id;
    assert_null(environment_find(world->env, slice_of(id)));
    assert_int_equal(cancel(world, id), OK);
    assert_true(triggering.done);
    assert_status(world, id, RUN_CANCELED);
    triggering_finish(&triggering);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, create_world, destroy_world)
    const struct CMUnitTest tests[] = {
        TEST(a_run_its_parent_and_its_root_change_in_one_commit),
        TEST(failed_commit_changes_none_of_the_runs),
        TEST(repeated_request_counts_once_in_all_runs),
        TEST(repeated_request_is_recognized_for_an_hour),
        TEST(request_id_belongs_to_its_run),
        TEST(a_repeated_request_drops_only_its_own_changes),
        TEST(repeated_request_fails_with_its_commit),
        TEST(request_counts_if_the_one_that_it_repeats_has_failed),
        TEST(change_is_decided_again_without_the_repeated_request),
        TEST(concurrent_changes_of_relatives_wait_for_each_other),
        TEST(borrowed_run_is_committed_with_its_borrower),
        TEST(concurrent_changes_of_siblings_share_a_few_commits),
        TEST(every_command_of_a_failed_commit_is_answered),
        TEST(siblings_change_one_by_one_without_time_left),
        TEST(missing_relative_is_skipped),
        TEST(rejected_change_leaves_relatives_unchanged),
        TEST(run_that_its_trigger_adds_meanwhile_is_not_loaded_again),
        cmocka_unit_test(relatives_that_are_only_in_the_store_are_loaded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
