/* Figures of a task are kept in quarters of an hour, for six hours, and for fifty tasks. */
#include "tests/support/world/unit.h"

#include "base/bytes.h"
#include "core/counters/task_figures.h"

enum { HOURS_6 = TASK_SLOT_MS * (TASK_SLOTS - 1) };
static const int64_t begin = INT64_C(1000000) * TASK_SLOT_MS;

/* Triggers a run of the task and ends it, after it has executed for duration_ms. */
static void pass_run(struct task_table *table, const char *task, enum run_status end,
                     int64_t duration_ms, int64_t now_ms)
{
    struct run run = { .id = "run_x",
                       .status = RUN_QUEUED,
                       .task = bytes_create(slice_of(task)),
                       .started_at = now_ms - duration_ms,
                       .finished_at = now_ms };
    task_table_note(table, -1, &run, now_ms);
    run.status = (uint8_t)end;
    task_table_note(table, RUN_QUEUED, &run, now_ms);
    task_table_note(table, (int)end, &run, now_ms); /* only its metadata changed */
    run_finish(&run);
}

static void runs_are_counted_by_how_they_ended(void **state)
{
    (void)state;
    struct task_table table = { 0 };
    struct task_slot sum;
    pass_run(&table, "mail", RUN_COMPLETED, 100, begin);
    pass_run(&table, "mail", RUN_CRASHED, 100, begin + 5);
    pass_run(&table, "mail", RUN_TIMED_OUT, 5000, begin + 6);
    pass_run(&table, "mail", RUN_CANCELED, 1, begin + 7);
    pass_run(&table, "mail", RUN_EXPIRED, 1, begin + 8);
    pass_run(&table, "other", RUN_COMPLETED, 1, begin);
    assert_int_equal(table.count, 2);
    const struct task_figures *mail = &table.tasks[0];
    assert_true(task_figures_sum(mail, begin, &sum));
    assert_int_equal(sum.at, begin);
    assert_int_equal(sum.triggers, 5);
    assert_int_equal(sum.completed, 1);
    assert_int_equal(sum.failed, 2);
    assert_int_equal(sum.canceled, 1);
    assert_int_equal(sum.expired, 1);
    assert_in_range(octaves_percentile(sum.durations, 3, 50), 100, 125);
    assert_in_range(octaves_percentile(sum.durations, 3, 95), 5000, 6250);
    assert_int_equal(mail->failure.at, begin + 6);
    assert_string_equal(mail->failure.run, "run_x");
    task_table_finish(&table);
}

static void six_hours_are_kept(void **state)
{
    (void)state;
    struct task_table table = { 0 };
    struct task_slot sum;
    for (int i = 0; i < TASK_SLOTS + 3; i++)
        pass_run(&table, "mail", RUN_COMPLETED, 1, begin + i * (int64_t)TASK_SLOT_MS);
    const struct task_figures *mail = &table.tasks[0];
    int64_t now = begin + (TASK_SLOTS + 2) * (int64_t)TASK_SLOT_MS;
    assert_int_equal(mail->count, TASK_SLOTS);
    assert_true(task_figures_sum(mail, 0, &sum));
    assert_int_equal(sum.at, now - HOURS_6);
    assert_int_equal(sum.triggers, TASK_SLOTS);
    assert_true(task_figures_sum(mail, now, &sum));
    assert_int_equal(sum.triggers, 1);
    assert_false(task_figures_sum(mail, now + TASK_SLOT_MS, &sum));
    pass_run(&table, "mail", RUN_COMPLETED, 1, begin); /* the clock was set back */
    assert_true(task_figures_sum(mail, now, &sum));
    assert_int_equal(sum.triggers, 2);
    task_table_finish(&table);
}

static void idle_task_makes_room_for_another(void **state)
{
    (void)state;
    struct task_table table = { 0 };
    char name[16];
    for (int i = 0; i < TASK_FIGURES_MAX; i++) {
        snprintf(name, sizeof(name), "task-%d", i);
        pass_run(&table, name, RUN_COMPLETED, 1, begin + (i ? TASK_SLOT_MS : 0));
    }
    pass_run(&table, "late", RUN_COMPLETED, 1, begin + TASK_SLOT_MS);
    assert_true(table.is_cut);
    assert_int_equal(table.count, TASK_FIGURES_MAX);
    pass_run(&table, "late", RUN_COMPLETED, 1, begin + HOURS_6 + TASK_SLOT_MS);
    assert_string_equal(table.tasks[0].task->data, "late");
    assert_int_equal(table.tasks[0].count, 1);
    task_table_finish(&table);
}

static void project_without_memory_keeps_the_newest_slots(void **state)
{
    (void)state;
    struct task_slot sum;
    struct quota quota = { .limit = 2 * sizeof(struct task_slot) };
    struct task_table table = { .quota = &quota };
    for (int i = 1; i <= 4; i++)
        pass_run(&table, "first", RUN_COMPLETED, 1, i * (int64_t)TASK_SLOT_MS);
    assert_true(table.is_cut);
    assert_true(task_figures_sum(&table.tasks[0], 0, &sum));
    assert_int_equal(sum.completed, 2);
    assert_int_equal(sum.at, 3 * (int64_t)TASK_SLOT_MS);
    pass_run(&table, "second", RUN_COMPLETED, 1, 4 * (int64_t)TASK_SLOT_MS);
    assert_false(task_figures_sum(&table.tasks[1], 0, &sum));
    assert_int_equal(quota.used, quota.limit);
    task_table_finish(&table);
    assert_int_equal(quota.used, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_are_counted_by_how_they_ended),
        cmocka_unit_test(six_hours_are_kept),
        cmocka_unit_test(idle_task_makes_room_for_another),
        cmocka_unit_test(project_without_memory_keeps_the_newest_slots),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
