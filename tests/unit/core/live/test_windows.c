/* The windows of an environment: the cost of each for the limits of environment and
 * project, and the changes that it evaluates. */
#include "tests/support/world/unit.h"

#include "core/live/environment.h"
#include "tests/support/world/world.h"

enum { VALUES_MAX = 500 };

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

/* Makes a query with values that begin with the letter. */
static struct query *query_of(char letter, size_t versions, size_t tags)
{
    static char texts[VALUES_MAX][24];
    static struct slice values[VALUES_MAX];
    const struct run_filter filter = { .is_test = -1,
                                       .versions = values,
                                       .version_count = versions,
                                       .tags = values + versions,
                                       .tag_count = tags };
    assert_in_range(versions + tags, 0, VALUES_MAX);
    for (size_t i = 0; i < versions + tags; i++) {
        snprintf(texts[i], sizeof(texts[i]), "%c%zu", letter, i);
        values[i] = slice_of(texts[i]);
    }
    return query_create(&filter, 0);
}

static size_t cost_of(size_t versions, size_t tags)
{
    struct query *query = query_of('a', versions, tags);
    struct query_cost cost = query_cost(query);
    assert_int_equal(cost.values, versions + tags);
    query_unref(query);
    return cost.queries;
}

static void filter_counts_once_for_each_sixteen_values(void **state)
{
    (void)state;
    assert_int_equal(cost_of(0, 0), 1);
    assert_int_equal(cost_of(0, 1), 1);
    assert_int_equal(cost_of(8, 8), 1);
    assert_int_equal(cost_of(8, 9), 2);
    assert_int_equal(cost_of(100, 0), 7);
    assert_int_equal(cost_of(400, 100), 32);
}

static void long_filters_use_more_of_the_quota(void **state)
{
    struct world *world = *state;
    struct windows *windows = &world->env->windows;
    struct quota project = { .limit = 10 };
    windows->quota.outer = &project;
    struct window *window = windows_find(windows, query_of('a', 100, 0));
    assert_non_null(window);
    assert_int_equal(windows->quota.used, 7);
    assert_ptr_equal(windows_find(windows, query_of('a', 100, 0)), window);
    assert_int_equal(windows->quota.used, 7);
    assert_null(windows_find(windows, query_of('b', 0, 49)));
    struct window *last = windows_find(windows, query_of('b', 0, 48));
    assert_non_null(last);
    assert_null(windows_find(windows, query_of('c', 0, 0)));
    windows_release(windows, window);
    windows_release(windows, last);
    assert_int_equal(windows->quota.used, 0);
    assert_int_equal(project.used, 0);
    windows->quota.outer = NULL; /* the outer quota's life ends here */
}

/* The run is of task "mail", in batch "b_1", and queued. */
static void change_is_evaluated_only_by_windows_that_it_may_concern(void **state)
{
    struct world *world = *state;
    struct windows *windows = &world->env->windows;
    struct hub *hub = &world->env->hub;
    struct slice mail = SLICE("mail"), sms = SLICE("sms"), tag = SLICE("a");
    const struct {
        struct run_filter filter;
        bool is_judged;
    } cases[] = {
        { { .is_test = -1 }, true },
        { { .is_test = -1, .batch = SLICE("b_1") }, true },
        { { .is_test = -1, .batch = SLICE("b_2") }, false },
        { { .is_test = -1, .tasks = &mail, .task_count = 1 }, true },
        { { .is_test = -1, .tasks = &sms, .task_count = 1 }, false },
        { { .is_test = -1, .tags = &tag, .tag_count = 1 }, false },
        { { .is_test = -1, .queues = &sms, .queue_count = 1 }, false },
        { { .is_test = -1, .statuses = 1u << RUN_QUEUED }, true },
        { { .is_test = -1, .statuses = 1u << RUN_FAILED }, false },
    };
    enum { CASES = sizeof(cases) / sizeof(cases[0]) };
    struct window *made[CASES];
    for (int i = 0; i < CASES; i++)
        made[i] = windows_find(windows, query_create(&cases[i].filter, 0));
    create_of(world, "run_1", "mail", "b_1");
    world_settle(world);
    for (int i = 0; i < CASES; i++) {
        assert_int_equal(made[i]->evaluated == world->env->applied, cases[i].is_judged);
        windows_release(windows, made[i]);
    }
    assert_int_equal(hub->topics[TOPIC_TASK].count, 0);
    assert_int_equal(hub->topics[TOPIC_TAG].count, 0);
    assert_int_equal(hub->topics[TOPIC_BATCH].count, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, create_world, destroy_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(filter_counts_once_for_each_sixteen_values),
        TEST(long_filters_use_more_of_the_quota),
        TEST(change_is_evaluated_only_by_windows_that_it_may_concern),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
