/* runner_end: what is reported to the gateway when the process of a run has ended. */
#include "supervisor/runners/runner_end.h"

#include <signal.h>

#include "base/json/scan.h"
#include "tests/support/world/unit.h"

static void run_that_was_not_started_is_given_back(void **state)
{
    (void)state;
    assert_int_equal(runner_end_of(&(struct runner_facts){ .started = false }),
                     RUNNER_END_RELEASE);
    assert_int_equal(runner_end_of(&(struct runner_facts){ .started = true, .open = true }),
                     RUNNER_END_LOOK);
    assert_int_equal(runner_end_of(&(struct runner_facts){ .started = true }),
                     RUNNER_END_NOTHING);
}

static const struct {
    enum process_cause cause;
    int status;
    bool oom, killed;
    const char *code;
} ends[] = {
    { PROCESS_EXITED, 1, false, false, "TASK_PROCESS_EXITED_WITH_NON_ZERO_CODE" },
    { PROCESS_EXITED, 0, false, false, "TASK_PROCESS_EXITED_WITH_NON_ZERO_CODE" },
    { PROCESS_EXITED, 137, false, false, "TASK_PROCESS_OOM_KILLED" },
    { PROCESS_EXITED, 137, false, true, "TASK_PROCESS_SIGTERM" },
    { PROCESS_SIGNALED, SIGKILL, true, false, "TASK_PROCESS_OOM_KILLED" },
    { PROCESS_SIGNALED, SIGKILL, false, false, "TASK_PROCESS_EXITED_WITH_NON_ZERO_CODE" },
    { PROCESS_SIGNALED, SIGKILL, false, true, "TASK_PROCESS_SIGTERM" },
    { PROCESS_SIGNALED, SIGTERM, false, false, "TASK_PROCESS_SIGTERM" },
    { PROCESS_SIGNALED, SIGSEGV, false, false, "TASK_PROCESS_SIGSEGV" },
    { PROCESS_SIGNALED, SIGABRT, false, false, "TASK_PROCESS_EXITED_WITH_NON_ZERO_CODE" },
};

static void end_is_reported_with_its_code(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        struct runner_facts facts = { .killed = ends[i].killed };
        struct process_end end = { .cause = ends[i].cause,
                                   .status = ends[i].status,
                                   .oom = ends[i].oom };
        assert_string_equal(runner_end_code(&facts, &end), ends[i].code);
    }
}

static enum runner_verdict judge(int64_t attempt, const char *status, const char *number)
{
    struct runner_facts facts = { .started = true, .open = true, .attempt = attempt };
    struct buf text = { 0 };
    buf_print(
        &text,
        "{\"execution\":{\"snapshot\":{\"friendlyId\":\"snapshot_7\",\"executionStatus\":"
        "\"%s\"},\"run\":{\"attemptNumber\":%s}}}",
        status, number);
    struct runner_newest newest = runner_end_decide(&facts, buf_slice(&text));
    if (newest.verdict != RUNNER_VERDICT_NOTHING)
        assert_string_equal(newest.snapshot, "snapshot_7");
    buf_finish(&text);
    return newest.verdict;
}

static void newest_snapshot_decides_what_to_report(void **state)
{
    struct runner_facts facts = { .started = true };
    (void)state;
    assert_int_equal(judge(2, "EXECUTING", "2"), RUNNER_VERDICT_FAILED);
    assert_int_equal(judge(2, "EXECUTING_WITH_WAITPOINTS", "2"), RUNNER_VERDICT_FAILED);
    assert_int_equal(judge(2, "PENDING_CANCEL", "2"), RUNNER_VERDICT_CANCELED);
    assert_int_equal(judge(2, "FINISHED", "2"), RUNNER_VERDICT_NOTHING);
    assert_int_equal(judge(2, "QUEUED", "2"), RUNNER_VERDICT_NOTHING);
    assert_int_equal(judge(2, "PENDING_EXECUTING", "2"), RUNNER_VERDICT_NOTHING);
    assert_int_equal(judge(2, "EXECUTING", "3"), RUNNER_VERDICT_NOTHING);
    assert_int_equal(judge(2, "EXECUTING", "null"), RUNNER_VERDICT_NOTHING);
    assert_int_equal(runner_end_decide(&facts, SLICE("no")).verdict,
                     RUNNER_VERDICT_NOTHING);
    assert_int_equal(runner_end_decide(&facts, SLICE("{}")).verdict,
                     RUNNER_VERDICT_NOTHING);
}

static void answer_to_complete_decides_whether_the_attempt_ended(void **state)
{
    (void)state;
    assert_true(
        runner_end_is_final(SLICE("{\"result\":{\"attemptStatus\":\"RUN_FINISHED\"}}")));
    assert_true(
        runner_end_is_final(SLICE("{\"result\":{\"attemptStatus\":\"RETRY_QUEUED\"}}")));
    assert_false(runner_end_is_final(
        SLICE("{\"result\":{\"attemptStatus\":\"RETRY_IMMEDIATELY\"}}")));
    assert_false(runner_end_is_final(
        SLICE("{\"result\":{\"attemptStatus\":\"RUN_PENDING_CANCEL\"}}")));
    assert_false(runner_end_is_final(SLICE("{}")));
    assert_false(runner_end_is_final(SLICE("[")));
}

static void reports_are_json_whatever_the_process_wrote(void **state)
{
    struct buf out = { 0 };
    (void)state;
    runner_end_completion(&out, "run_a", "TASK_PROCESS_SIGSEGV", "it \"ended\"",
                          SLICE("a\xff\n\x1b[0m"));
    assert_true(scan_is_json(buf_slice(&out)));
    struct slice completion = scan_member(buf_slice(&out), "completion");
    assert_true(slice_is(scan_member(completion, "ok"), "false"));
    assert_true(slice_is(scan_member(buf_slice(&out), "forceRequeue"), "true"));
    struct slice error = scan_member(completion, "error");
    assert_true(slice_is(scan_member(error, "code"), "\"TASK_PROCESS_SIGSEGV\""));
    assert_true(slice_starts(scan_member(error, "stackTrace"), "\"a?"));
    buf_finish(&out);
    char reason[600];
    memset(reason, 'x', sizeof(reason));
    memcpy(reason + 255, "\xc3\xa4", 2);
    reason[599] = '\0';
    runner_end_release(&out, reason);
    assert_true(scan_is_json(buf_slice(&out)));
    assert_int_equal(scan_member(buf_slice(&out), "reason").len, 255 + 2);
    buf_finish(&out);
}

static void end_is_reported_with_its_cause(void **state)
{
    static const struct {
        struct runner_facts facts;
        bool has_run;
        struct process_end end;
        enum runner_cause cause;
    } cases[] = {
        { { .started = true }, true, { .cause = PROCESS_EXITED }, RUNNER_CAUSE_DONE },
        { { 0 }, false, { .cause = PROCESS_EXITED }, RUNNER_CAUSE_DONE },
        { { 0 }, true, { .cause = PROCESS_EXITED, .status = 1 }, RUNNER_CAUSE_EXIT },
        { { .started = true, .open = true },
          true,
          { .cause = PROCESS_SIGNALED, .status = SIGSEGV },
          RUNNER_CAUSE_SIGNAL },
        { { .started = true, .open = true },
          true,
          { .cause = PROCESS_SIGNALED, .status = SIGKILL, .oom = true },
          RUNNER_CAUSE_MEMORY },
        { { .started = true, .open = true, .killed = true },
          true,
          { .cause = PROCESS_SIGNALED, .status = SIGKILL },
          RUNNER_CAUSE_KILLED },
        { { 0 }, true, { .cause = PROCESS_NOT_STARTED }, RUNNER_CAUSE_NOT_STARTED },
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_int_equal(runner_end_cause(&cases[i].facts, cases[i].has_run, &cases[i].end),
                         cases[i].cause);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(run_that_was_not_started_is_given_back),
        cmocka_unit_test(end_is_reported_with_its_code),
        cmocka_unit_test(end_is_reported_with_its_cause),
        cmocka_unit_test(newest_snapshot_decides_what_to_report),
        cmocka_unit_test(answer_to_complete_decides_whether_the_attempt_ended),
        cmocka_unit_test(reports_are_json_whatever_the_process_wrote),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
