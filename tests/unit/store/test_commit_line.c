/* Which commits are written next: groups of small ones; large ones on their own. */
#include "tests/support/world/unit.h"

#include "store/commit_line.h"

enum { COMMITS = 3000, ITEMS = 500, BYTES = 3 << 20, ATTACKER = 1, VICTIM = 2, OTHER = 3 };

struct commit {
    struct store_commit req;
    struct change change; /* the only change, or the first of many */
};

static struct {
    struct commit_line line;
    struct store store; /* share_of: NULL or branches_of_one */
    struct commit commits[COMMITS];
    size_t count;
    struct change items[OTHER + 1][ITEMS]; /* changes of a batch, by environment */
    struct list group;
} scene;

static int set_up(void **state)
{
    (void)state;
    memset(&scene, 0, sizeof(scene));
    commit_line_init(&scene.line);
    list_init(&scene.group);
    return 0;
}

/* From FIRST_BRANCH on, environments are branches of one project. */
enum { FIRST_BRANCH = 100, BRANCHES = 200 };

static uint64_t branches_of_one(void *owner, uint32_t env)
{
    (void)owner;
    return env < FIRST_BRANCH ? env : FIRST_BRANCH;
}

static int tear_down(void **state)
{
    struct list all;
    (void)state;
    list_init(&all);
    commit_line_empty_into(&scene.line, &all);
    commit_line_finish(&scene.line);
    return 0;
}

static struct store_commit *add(uint32_t env)
{
    struct commit *commit = &scene.commits[scene.count++];
    commit->change = (struct change){ .kind = CHANGE_RUN, .env = env };
    commit->req.changes = &commit->change;
    commit->req.change_count = 1;
    commit_line_add(&scene.line, &scene.store, &commit->req);
    return &commit->req;
}

static struct store_commit *add_batch(uint32_t env)
{
    struct commit *commit = &scene.commits[scene.count++];
    for (size_t i = 0; i < ITEMS; i++)
        scene.items[env][i] = (struct change){ .kind = CHANGE_RUN, .env = env };
    commit->req.changes = scene.items[env];
    commit->req.change_count = ITEMS;
    commit_line_add(&scene.line, &scene.store, &commit->req);
    return &commit->req;
}

/* Adds a commit that counts as large because of its claims, which are not read here. */
static struct store_commit *add_large(uint32_t env)
{
    struct commit *commit = &scene.commits[scene.count++];
    commit->change = (struct change){ .kind = CHANGE_RUN, .env = env };
    commit->req.changes = &commit->change;
    commit->req.change_count = 1;
    commit->req.claim_count = ITEMS;
    commit_line_add(&scene.line, &scene.store, &commit->req);
    return &commit->req;
}

/* Takes a group and returns its size; the group is emptied by the next call. */
static size_t take(void)
{
    size_t count = 0;
    list_init(&scene.group);
    commit_line_take(&scene.line, &scene.group);
    list_each (link, &scene.group)
        count++;
    return count;
}

static bool has(const struct store_commit *req)
{
    list_each (link, &scene.group)
        if (link == &req->link)
            return true;
    return false;
}

static void waiting_commits_are_written_together_in_order(void **state)
{
    (void)state;
    struct store_commit *first = add(ATTACKER), *second = add(VICTIM);
    assert_false(commit_line_empty(&scene.line));
    assert_int_equal(take(), 2);
    assert_true(scene.group.next == &first->link && scene.group.prev == &second->link);
    assert_true(commit_line_empty(&scene.line));
}

static void a_small_commit_waits_for_one_large_one_at_most(void **state)
{
    (void)state;
    add_batch(ATTACKER);
    assert_int_equal(take(), 1);
    for (int i = 0; i < 20; i++)
        add_batch(ATTACKER);
    struct store_commit *victim = add(VICTIM);
    assert_int_equal(take(), 1); /* not together with a large one that would delay it */
    assert_true(has(victim));
    assert_int_equal(take(), 1); /* large ones make progress too */
    struct store_commit *late = add(VICTIM);
    assert_int_equal(take(), 1);
    assert_true(has(late));
}

static void large_commits_wait_for_one_group_of_small_ones(void **state)
{
    (void)state;
    for (int i = 0; i < 2000; i++)
        add(ATTACKER);
    struct store_commit *large = add_batch(VICTIM);
    take();
    if (!has(large))
        take();
    assert_true(has(large));
}

static void a_commit_of_many_bytes_is_large(void **state)
{
    (void)state;
    struct bytes *body = bytes_create_empty(BYTES);
    struct commit *commit = &scene.commits[scene.count++];
    commit->change = (struct change){ .kind = CHANGE_RUN, .env = ATTACKER };
    commit->change.run.payload = body;
    commit->req.changes = &commit->change;
    commit->req.change_count = 1;

    commit->change.marks = MARK_PAYLOAD;
    commit_line_add(&scene.line, &scene.store, &commit->req);
    struct store_commit *victim = add(VICTIM);
    assert_int_equal(take(), 1);
    assert_int_equal(take(), 1);
    assert_true(has(victim));

    commit->change.marks = 0; /* its payload is not written again */
    commit_line_add(&scene.line, &scene.store, &commit->req);
    victim = add(VICTIM);
    assert_int_equal(take(), 2);
    assert_true(has(victim));
    bytes_unref(body);
}

static void commit_does_not_wait_for_the_whole_queue_of_another_environment(void **state)
{
    (void)state;
    for (int i = 0; i < 2500; i++)
        add(ATTACKER);
    struct store_commit *victim = add(VICTIM);
    assert_in_range(take(), 2, 300);
    assert_true(has(victim));
    while (!commit_line_empty(&scene.line))
        assert_in_range(take(), 1, 300);
}

/* As many environments as a project has, with its branches. */
static void commit_does_not_wait_for_the_whole_queues_of_many_environments(void **state)
{
    (void)state;
    for (int i = 0; i < 350; i++)
        for (uint32_t env = 11; env <= 18; env++)
            add(env);
    struct store_commit *victim = add(VICTIM);
    assert_in_range(take(), 9, 1100);
    assert_true(has(victim));
}

static void more_environments_than_a_group_holds_take_turns(void **state)
{
    (void)state;
    struct store_commit *last = NULL;
    for (uint32_t env = 1; env <= 40; env++)
        last = add(env);
    size_t groups = 0;
    do {
        assert_in_range(take(), 1, 40);
        groups++;
    } while (!has(last));
    assert_true(groups <= 4);
    assert_true(commit_line_empty(&scene.line));
}

static void large_commits_of_environments_take_turns(void **state)
{
    (void)state;
    for (int i = 0; i < 5; i++)
        add_batch(ATTACKER);
    take();
    struct store_commit *victim = add_batch(VICTIM);
    take();
    assert_true(has(victim));
}

static void large_commits_over_several_environments_take_turns(void **state)
{
    (void)state;
    for (int i = 0; i < 10; i++)
        add_batch(i % 2 ? ATTACKER : OTHER);
    struct store_commit *victim = add_batch(VICTIM);
    for (int i = 0; i < 2; i++)
        assert_int_equal(take(), 1);
    assert_int_equal(take(), 1);
    assert_true(has(victim));
}

static void branches_of_a_project_share_one_turn_of_a_group(void **state)
{
    (void)state;
    scene.store.share_of = branches_of_one;
    for (int i = 0; i < 10; i++)
        for (uint32_t env = 0; env < BRANCHES; env++)
            add(FIRST_BRANCH + env);
    struct store_commit *victims[300];
    for (int i = 0; i < 300; i++)
        victims[i] = add(VICTIM);
    assert_in_range(take(), 250, 260); /* shares of two projects, not of 201 environments */
    assert_true(has(victims[120]));
    assert_false(has(victims[140]));
}

static void large_commits_of_branches_share_one_turn(void **state)
{
    (void)state;
    scene.store.share_of = branches_of_one;
    for (uint32_t env = 0; env < BRANCHES; env++)
        add_large(FIRST_BRANCH + env);
    struct store_commit *victim = add_batch(VICTIM);
    assert_int_equal(take(), 1);
    assert_int_equal(take(), 1);
    assert_true(has(victim));
}

static void branches_of_a_project_take_turns(void **state)
{
    (void)state;
    scene.store.share_of = branches_of_one;
    for (int i = 0; i < 2500; i++)
        add(FIRST_BRANCH);
    struct store_commit *other = add(FIRST_BRANCH + 1);
    assert_in_range(take(), 128, 130);
    assert_true(has(other));
}

static bool has_queues(const struct commit_turns *turns)
{
    uint32_t at = 0;
    return slots_next(&turns->queues, &at);
}

/* Branches are created and deleted, and their numbers are not used again. */
static void an_environment_without_commits_has_no_queue(void **state)
{
    (void)state;
    for (uint32_t env = 1; env <= 40; env++)
        add(env);
    add_batch(OTHER);
    assert_true(has_queues(&scene.line.small) && has_queues(&scene.line.large));
    while (!commit_line_empty(&scene.line))
        take();
    assert_false(has_queues(&scene.line.small) || has_queues(&scene.line.large));
    struct store_commit *again = add(VICTIM);
    assert_int_equal(take(), 1);
    assert_true(has(again));
}

static void all_waiting_commits_can_be_taken_at_once(void **state)
{
    struct list all;
    (void)state;
    list_init(&all);
    add(ATTACKER);
    add_batch(ATTACKER);
    commit_line_empty_into(&scene.line, &all);
    assert_true(commit_line_empty(&scene.line));
    assert_false(list_empty(&all));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(waiting_commits_are_written_together_in_order),
        TEST(a_small_commit_waits_for_one_large_one_at_most),
        TEST(large_commits_wait_for_one_group_of_small_ones),
        TEST(a_commit_of_many_bytes_is_large),
        TEST(commit_does_not_wait_for_the_whole_queue_of_another_environment),
        TEST(commit_does_not_wait_for_the_whole_queues_of_many_environments),
        TEST(more_environments_than_a_group_holds_take_turns),
        TEST(large_commits_of_environments_take_turns),
        TEST(large_commits_over_several_environments_take_turns),
        TEST(branches_of_a_project_share_one_turn_of_a_group),
        TEST(large_commits_of_branches_share_one_turn),
        TEST(branches_of_a_project_take_turns),
        TEST(an_environment_without_commits_has_no_queue),
        TEST(all_waiting_commits_can_be_taken_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
