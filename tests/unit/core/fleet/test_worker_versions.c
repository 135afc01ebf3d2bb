/* Which version is current, which number the next one gets, and how a version is found. */
#include "tests/support/world/unit.h"

#include "base/mem.h"
#include "core/fleet/worker_versions.h"

static const int64_t day_ms = 24 * 3600 * 1000;
static const int64_t now_ms = INT64_C(1700000000000); /* 2023-11-14T22:13:20Z */

/* Adds a version with one task, created later than the one before. deployment:
 * "deployment_1/external"; NULL: none. */
static struct worker *add(struct workers *workers, const char *version, const char *task,
                          const char *deployment)
{
    struct worker *worker = mem_new(struct worker);
    struct slice rest = slice_of(deployment), id = { 0 };
    slice_split(&rest, '/', &id);
    snprintf(worker->version, sizeof(worker->version), "%s", version);
    snprintf(worker->deployment, sizeof(worker->deployment), "%.*s", SLICE_ARG(id));
    snprintf(worker->external_id, sizeof(worker->external_id), "%.*s", SLICE_ARG(rest));
    worker->created_at = (int64_t)workers->count;
    worker->tasks = mem_new_array(struct worker_task, 1);
    worker->tasks[worker->task_count++].id = bytes_create(slice_of(task));
    workers_add(workers, worker);
    return worker;
}

static void versions_sort_by_day_and_number(void **state)
{
    (void)state;
    static const char *const rising[] = { "",           "20231113.9",  "20231114.1",
                                          "20231114.9", "20231114.10", "20231114.11",
                                          "20231201.1" };
    enum { COUNT = sizeof(rising) / sizeof(rising[0]) };
    for (int a = 0; a < COUNT; a++)
        for (int b = 0; b < COUNT; b++) {
            int order = version_compare(slice_of(rising[a]), slice_of(rising[b]));
            assert_int_equal((order > 0) - (order < 0), (a > b) - (a < b));
        }
}

static void assert_next(struct workers *workers, int64_t time, const char *expected)
{
    char version[WORKER_VERSION_MAX];
    workers_next_version(workers, time, version);
    assert_string_equal(version, expected);
}

static void assert_taken(struct workers *workers, int64_t time, const char *expected)
{
    char version[WORKER_VERSION_MAX];
    workers_take_version(workers, time, version);
    assert_string_equal(version, expected);
}

static void registrations_and_deployments_share_version_numbers(void **state)
{
    (void)state;
    struct workers *workers = workers_create();
    assert_next(workers, now_ms, "20231114.1");
    add(workers, "20231114.1", "a", NULL);
    assert_taken(workers, now_ms, "20231114.2"); /* no worker has it yet, perhaps never */
    assert_taken(workers, now_ms, "20231114.3");
    assert_next(workers, now_ms, "20231114.4");
    assert_next(workers, now_ms, "20231114.4");  /* at once: the store accepts only one */
    assert_taken(workers, now_ms, "20231114.5"); /* the registration may have got it */
    workers_reserve_version(workers, SLICE("20231114.12"));
    workers_reserve_version(workers, SLICE("20231114.7"));
    assert_taken(workers, now_ms, "20231114.13");
    assert_next(workers, now_ms + day_ms, "20231115.1");
    assert_next(workers, now_ms, "20231114.14");
    workers_destroy(workers);
}

static void clock_set_back_makes_no_older_version(void **state)
{
    (void)state;
    struct workers *workers = workers_create();
    add(workers, "20231114.2", "a", NULL);
    assert_next(workers, now_ms - day_ms, "20231114.3");
    assert_taken(workers, now_ms - day_ms, "20231114.4");
    workers_destroy(workers);
}

static void the_newest_plain_registration_is_current_until_one_is_promoted(void **state)
{
    (void)state;
    struct workers *workers = workers_create();
    assert_null(workers_current(workers));
    struct worker *first = add(workers, "20231114.1", "a", "deployment_1/");
    assert_null(workers_current(workers));
    struct worker *second = add(workers, "20231114.2", "a", NULL);
    assert_ptr_equal(workers_current(workers), second);
    add(workers, "20231114.3", "a", "deployment_3/");
    assert_ptr_equal(workers_current(workers), second);
    struct worker *fourth = add(workers, "20231114.4", "a", NULL);
    assert_ptr_equal(workers_current(workers), fourth);
    workers_promote(workers, first, 1);
    add(workers, "20231114.5", "a", NULL);
    assert_ptr_equal(workers_current(workers), first);
    workers_destroy(workers);
}

static void deployment_is_found_only_once_it_is_deployed(void **state)
{
    (void)state;
    struct workers *workers = workers_create();
    struct worker *low = add(workers, "20231114.9", "a", "deployment_9/x");
    struct worker *high = add(workers, "20231114.10", "a", "deployment_10/x");
    assert_null(workers_by_version(workers, SLICE("20231114.9")));
    assert_null(workers_by_external(workers, SLICE("x")));
    assert_ptr_equal(workers_by_deployment(workers, SLICE("deployment_9")), low);
    assert_null(workers_by_deployment(workers, SLICE("")));
    high->is_deployed = true;
    assert_ptr_equal(workers_by_external(workers, SLICE("x")), high);
    low->is_deployed = true;
    assert_ptr_equal(workers_by_external(workers, SLICE("x")), high);
    assert_null(workers_by_external(workers, SLICE("")));
    assert_ptr_equal(workers_by_version(workers, SLICE("20231114.9")), low);
    workers_destroy(workers);
}

/* First the task of the current version, otherwise that of the newest one left. */
static void task_is_taken_from_the_current_version(void **state)
{
    (void)state;
    struct workers *workers = workers_create();
    struct worker *first = add(workers, "20231114.1", "a", NULL);
    struct worker *second = add(workers, "20231114.2", "a", NULL);
    struct worker *third = add(workers, "20231114.3", "a", "deployment_3/");
    assert_ptr_equal(workers_task(workers, SLICE("a")), &second->tasks[0]);
    workers_promote(workers, first, 1);
    assert_ptr_equal(workers_task(workers, SLICE("a")), &first->tasks[0]);
    struct worker *other = add(workers, "20231114.4", "b", NULL);
    workers_promote(workers, other, 2);
    assert_ptr_equal(workers_task(workers, SLICE("a")), &third->tasks[0]);
    assert_true(workers_may_take(workers, third) && !workers_may_take(workers, other));
    workers_take(workers, third);
    worker_destroy(third);
    assert_ptr_equal(workers_task(workers, SLICE("a")), &second->tasks[0]);
    workers_take(workers, first);
    worker_destroy(first);
    assert_ptr_equal(workers_task(workers, SLICE("a")), &second->tasks[0]);
    workers_take(workers, second);
    worker_destroy(second);
    assert_null(workers_task(workers, SLICE("a")));
    workers_destroy(workers);
}

static const struct sibling_workers none_beside;

static void evicted_version_is_neither_current_nor_deployed(void **state)
{
    (void)state;
    struct workers *workers = workers_create();
    struct worker *current = add(workers, "20231101.1", "a", NULL);
    add(workers, "20231102.1", "a", "deployment_1/");
    struct worker *promoted = add(workers, "20231103.1", "a", NULL);
    struct worker *old = add(workers, "20231104.1", "a", NULL);
    workers_promote(workers, current, 1);
    promoted->promotions++;
    for (int i = 4; i < VERSIONS_KEPT; i++)
        add(workers, "20231105.1", "a", NULL);
    assert_null(workers_take_excess(workers, none_beside));
    add(workers, "20231106.1", "a", NULL);
    assert_ptr_equal(workers_take_excess(workers, none_beside), old);
    assert_null(workers_take_excess(workers, none_beside));
    worker_destroy(old);
    workers_destroy(workers);
}

/* Returns how many of 30 versions are kept. */
static size_t kept_beside(struct sibling_workers siblings, struct session *session)
{
    struct workers *workers = workers_create();
    for (int i = 0; i < 30; i++)
        add(workers, "20231101.1", "a", NULL)->session = session;
    for (struct worker *gone; (gone = workers_take_excess(workers, siblings));)
        worker_destroy(gone);
    size_t kept = workers->count;
    workers_destroy(workers);
    return kept;
}

static void full_project_keeps_the_newest_versions(void **state)
{
    (void)state;
    struct sibling_workers fits = { .others.versions = PROJECT_VERSIONS_KEPT - 30 },
                           nearly = { .others.versions = PROJECT_VERSIONS_KEPT - 25 },
                           full = { .others.versions = PROJECT_VERSIONS_KEPT },
                           of_tasks = { .others.tasks = PROJECT_TASKS_KEPT };
    struct session *session = mem_alloc(1); /* only its address counts */
    assert_int_equal(kept_beside(none_beside, NULL), 30);
    assert_int_equal(kept_beside(fits, NULL), 30);
    assert_int_equal(kept_beside(nearly, NULL), 25);
    assert_int_equal(kept_beside(full, NULL), VERSIONS_SPARED);
    assert_int_equal(kept_beside(of_tasks, NULL), VERSIONS_SPARED);
    assert_int_equal(kept_beside(full, session), 30);
    free(session);
}

static void branches_displace_versions_of_branches_only(void **state)
{
    (void)state;
    enum { PART = PROJECT_VERSIONS_KEPT / 2 };
    struct sibling_workers prod = { .branches.versions = PROJECT_VERSIONS_KEPT,
                                    .others.versions = PART - 30 },
                           branch = { .branches.versions = PART - 25, .is_branch = true },
                           of_tasks = { .branches.tasks = PROJECT_TASKS_KEPT };
    assert_int_equal(kept_beside(prod, NULL), 30);
    assert_int_equal(kept_beside(of_tasks, NULL), 30);
    assert_int_equal(kept_beside(branch, NULL), 25);
    of_tasks.is_branch = true;
    assert_int_equal(kept_beside(of_tasks, NULL), VERSIONS_SPARED);
}

static void evicted_version_is_remembered_for_a_while(void **state)
{
    (void)state;
    struct workers *workers = workers_create();
    char version[WORKER_VERSION_MAX];
    for (int i = 1; i <= VERSIONS_REMEMBERED + 2; i++) {
        snprintf(version, sizeof(version), "20231114.%d", i);
        workers_note_gone(workers, slice_of(version));
    }
    assert_false(workers_knows_gone(workers, SLICE("20231114.2")));
    assert_true(workers_knows_gone(workers, SLICE("20231114.3")));
    assert_true(workers_knows_gone(workers, slice_of(version)));
    assert_int_equal(workers->gone_count, VERSIONS_REMEMBERED);
    workers_destroy(workers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(versions_sort_by_day_and_number),
        cmocka_unit_test(registrations_and_deployments_share_version_numbers),
        cmocka_unit_test(clock_set_back_makes_no_older_version),
        cmocka_unit_test(the_newest_plain_registration_is_current_until_one_is_promoted),
        cmocka_unit_test(deployment_is_found_only_once_it_is_deployed),
        cmocka_unit_test(task_is_taken_from_the_current_version),
        cmocka_unit_test(evicted_version_is_neither_current_nor_deployed),
        cmocka_unit_test(full_project_keeps_the_newest_versions),
        cmocka_unit_test(branches_displace_versions_of_branches_only),
        cmocka_unit_test(evicted_version_is_remembered_for_a_while),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
