/* The figures of an environment are written as a text, and read again after a restart. */
#include "tests/support/world/unit.h"

#include "core/counters/activity_document.h"

enum { BEGIN = 4 * TASK_SLOT_MS };

static void note_runs(struct stats *stats, struct task_table *tasks, int64_t at)
{
    struct bytes *task = bytes_create(SLICE("mail \"a\""));
    struct run run = { .id = "run_x", .task = task, .status = RUN_QUEUED };
    stats_note_run(stats, -1, RUN_QUEUED);
    task_table_note(tasks, -1, &run, at);
    run.status = RUN_FAILED;
    run.started_at = at;
    run.finished_at = at + 40;
    stats_note_run(stats, RUN_QUEUED, RUN_FAILED);
    stats_note_delivery(stats, 250);
    task_table_note(tasks, RUN_QUEUED, &run, at);
    bytes_unref(task);
}

static void write_figures(struct buf *text)
{
    struct stats stats;
    struct task_table tasks = { 0 };
    stats_init(&stats, BEGIN + 5);
    note_runs(&stats, &tasks, BEGIN + 5);
    stats_close(&stats, BEGIN + STATS_INTERVAL_MS, 2, BEGIN + 5);
    note_runs(&stats, &tasks, BEGIN + STATS_INTERVAL_MS); /* in the open sample */
    activity_document_write(&stats, &tasks, text);
    stats_finish(&stats);
    task_table_finish(&tasks);
}

static void figures_are_read_as_they_were_written(void **state)
{
    (void)state;
    struct buf text = { 0 };
    struct failure why;
    struct stats stats;
    struct task_table tasks = { 0 };
    struct task_slot sum;
    int64_t now = BEGIN + 2 * TASK_SLOT_MS;
    write_figures(&text);
    stats_init(&stats, now);
    assert_int_equal(activity_document_read(buf_slice(&text), now, &stats, &tasks, &why),
                     OK);
    assert_int_equal(stats.from, BEGIN + 5);
    assert_int_equal(stats.count, 1);
    assert_false(stats.changed);
    const struct stats_sample *sample = stats_at(&stats, 0);
    assert_int_equal(sample->at, BEGIN);
    assert_int_equal(sample->triggers, 1);
    assert_int_equal(sample->ends[RUN_FAILED - RUN_CANCELED], 1);
    assert_int_equal(sample->queued, 2);
    assert_int_equal(sample->queued_since, BEGIN + 5);
    assert_int_equal(sample->deliveries, 1);
    assert_true(sample->p99_us >= 250);
    assert_int_equal(tasks.count, 1);
    assert_string_equal(tasks.tasks[0].task->data, "mail \"a\"");
    assert_string_equal(tasks.tasks[0].failure.run, "run_x");
    assert_int_equal(tasks.tasks[0].failure.at, BEGIN + STATS_INTERVAL_MS);
    assert_true(task_figures_sum(&tasks.tasks[0], 0, &sum));
    assert_int_equal(sum.triggers, 2);
    assert_int_equal(sum.failed, 2);
    uint32_t median = octaves_percentile(sum.durations, 2, 50);
    assert_true(median >= 40 && median <= 50);
    stats_finish(&stats);
    task_table_finish(&tasks);
    buf_finish(&text);
}

static void what_left_the_six_hours_is_not_read(void **state)
{
    (void)state;
    struct buf text = { 0 };
    struct failure why;
    struct stats stats;
    struct task_table tasks = { 0 };
    int64_t now = BEGIN + STATS_KEPT_MS + 2 * TASK_SLOT_MS;
    write_figures(&text);
    stats_init(&stats, now);
    assert_int_equal(activity_document_read(buf_slice(&text), now, &stats, &tasks, &why),
                     OK);
    assert_int_equal(stats.count, 0);
    assert_int_equal(tasks.count, 0);
    stats_finish(&stats);
    task_table_finish(&tasks);
    buf_finish(&text);
}

static void samples_are_read_once_and_in_order(void **state)
{
    (void)state;
    static const char text[] =
        "{\"from\":1,\"samples\":[[3620000,1,0,0,0,0,0,0,0,0,0,0,0,0,0],"
        "[3610000,1,0,0,0,0,0,0,0,0,0,0,0,0,0],[3620000,1,0,0,0,0,0,0,0,0,0,0,0,0,0],"
        "[3630001,1,0,0,0,0,0,0,0,0,0,0,0,0,0],[9990000,1,0,0,0,0,0,0,0,0,0,0,0,0,0]],"
        "\"tasks\":[]}";
    struct failure why;
    struct stats stats;
    struct task_table tasks = { 0 };
    assert_int_equal(FIGURES_ENDS, 8); /* the numbers above */
    stats_init(&stats, BEGIN + 60000);
    assert_int_equal(
        activity_document_read(slice_of(text), BEGIN + 60000, &stats, &tasks, &why), OK);
    assert_int_equal(stats.count, 1);
    assert_int_equal(stats_at(&stats, 0)->at, BEGIN + 20000);
    stats_finish(&stats);
}

static void a_damaged_text_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "[]",
        "{}",
        "{\"from\":1,\"samples\":{},\"tasks\":[]}",
        "{\"from\":1,\"samples\":[[1,2]],\"tasks\":[]}",
        "{\"from\":1,\"samples\":[[-10000,1,0,0,0,0,0,0,0,0,0,0,0,0,0]],\"tasks\":[]}",
        "{\"from\":1,\"samples\":[]}",
        "{\"from\":1,\"samples\":[],\"tasks\":[1]}",
        "{\"from\":1,\"samples\":[],\"tasks\":[{\"task\":\"a\",\"failedAt\":0,"
        "\"failedRun\":\"\\\"\",\"slots\":[]}]}",
        "{\"from\":1,\"samples\":[],\"tasks\":[{\"task\":\"a\",\"failedAt\":0,"
        "\"failedRun\":\"\",\"slots\":[[900000,1,1,1,1,1,96,1]]}]}",
        "{\"from\":1,\"samples\":[],\"tasks\":[{\"task\":\"a\",\"failedAt\":0,"
        "\"failedRun\":\"\",\"slots\":[[900000,1,1,1,1,1,9]]}]}",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct failure why;
        struct stats stats;
        struct task_table tasks = { 0 };
        stats_init(&stats, BEGIN);
        assert_int_equal(
            activity_document_read(slice_of(texts[i]), BEGIN, &stats, &tasks, &why),
            ERR_INVALID);
        assert_true(why.text[0]);
        stats_finish(&stats);
        task_table_finish(&tasks);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(figures_are_read_as_they_were_written),
        cmocka_unit_test(what_left_the_six_hours_is_not_read),
        cmocka_unit_test(samples_are_read_once_and_in_order),
        cmocka_unit_test(a_damaged_text_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
