/* The next state of a run, for every state and every event. */
#include "tests/support/world/unit.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "core/model/run_life.h"

enum { NOW = 1700000000 };

/* A state by a letter; capital ones are final. */
static const struct {
    char letter;
    enum run_status status;
    enum run_execution execution;
} places[] = {
    { 'l', RUN_DELAYED, EXECUTION_DELAYED },
    { 'v', RUN_PENDING_VERSION, EXECUTION_CREATED },
    { 'q', RUN_QUEUED, EXECUTION_QUEUED },
    { 'd', RUN_DEQUEUED, EXECUTION_PENDING_EXECUTING },
    { 'e', RUN_EXECUTING, EXECUTION_EXECUTING },
    { 'w', RUN_WAITING, EXECUTION_WITH_WAITPOINTS },
    { 'p', RUN_RETRYING, EXECUTION_EXECUTING },
    { 'r', RUN_RETRYING, EXECUTION_QUEUED },
    { 't', RUN_RETRYING, EXECUTION_PENDING_EXECUTING },
    { 'c', RUN_CANCELED, EXECUTION_PENDING_CANCEL },
    { 'C', RUN_CANCELED, EXECUTION_FINISHED },
    { 'S', RUN_COMPLETED, EXECUTION_FINISHED },
    { 'F', RUN_FAILED, EXECUTION_FINISHED },
    { 'I', RUN_INTERRUPTED, EXECUTION_FINISHED },
    { 'X', RUN_CRASHED, EXECUTION_FINISHED },
    { 'Y', RUN_SYSTEM_FAILURE, EXECUTION_FINISHED },
    { 'E', RUN_EXPIRED, EXECUTION_FINISHED },
    { 'T', RUN_TIMED_OUT, EXECUTION_FINISHED },
};

/* The state after each event, in the order of enum run_event; a point is a conflict.
 *
 *   DELAY_OVER NO_VERSION VERSION_CAME TTL_OVER DEQUEUED LEASE_OVER STARTED  WAIT WAIT_OVER
 *   RETRY_SOON RETRY_QUEUED SUCCEEDED FAILED CRASHED SYSTEM_FAILURE TIMED_OUT
 *   INTERRUPTED CANCEL CANCEL_CONFIRMED */
static const struct {
    char from;
    const char *to;
} expected[] = {
    { 'l', "qv..... .. .. ..... .C." }, { 'v', "..qE... .. .. ..... .C." },
    { 'q', ".v.Ed.. .. .. ..... .C." }, { 'd', ".....qe .. .. ...Y. Ic." },
    { 'e', "....... w. pr SFXYT Ic." }, { 'w', "....... we pr SFXYT Ic." },
    { 'p', "......e .. .r .FXY. IC." }, { 'r', ".v..t.. .. .. ...Y. IC." },
    { 't', ".....re .. .. .FXY. Ic." }, { 'c', "....... .. .. ..... .cC" },
};

static char letter_of(int status, int execution)
{
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
        if ((int)places[i].status == status && (int)places[i].execution == execution)
            return places[i].letter;
    return '.';
}

static char expected_letter(char from, int event)
{
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        if (expected[i].from != from)
            continue;
        for (const char *cell = expected[i].to; *cell; cell++)
            if (*cell != ' ' && event-- == 0)
                return *cell;
    }
    return '.';
}

static bool is_final_letter(char letter)
{
    return letter >= 'A' && letter <= 'Z';
}

static struct run run_in(int status, int execution)
{
    return (struct run){
        .status = (uint8_t)status,
        .execution = (uint8_t)execution,
        .snapshot = 5,
        .updated_at = 1,
    };
}

static void assert_conflict(struct run run, enum run_event event)
{
    struct run before = run;
    assert_int_equal(run_advance(&run, event, NOW), ERR_CONFLICT);
    assert_memory_equal(&run, &before, sizeof(run));
}

static void assert_goes(struct run run, enum run_event event, char to)
{
    assert_int_equal(run_advance(&run, event, NOW), OK);
    assert_int_equal(letter_of(run.status, run.execution), to);
    assert_int_equal(run.updated_at, NOW);
    assert_int_equal(run.snapshot, 6);
    assert_int_equal(run.finished_at, is_final_letter(to) ? NOW : 0);
    assert_int_equal(run_holds_slot(&run), strchr("dept", to) != NULL);
    assert_int_equal(run_is_with_worker(&run), strchr("dewpt", to) != NULL);
}

static void every_event_in_every_state_follows_the_table(void **state)
{
    (void)state;
    int transitions = 0;
    for (int status = 0; status < RUN_STATUS_COUNT; status++) {
        for (int execution = 0; execution < EXECUTION_COUNT; execution++) {
            char from = letter_of(status, execution);
            for (int event = 0; event < EVENT_COUNT; event++) {
                char to = expected_letter(from, event);
                if (to == '.') {
                    assert_conflict(run_in(status, execution), event);
                    continue;
                }
                assert_goes(run_in(status, execution), event, to);
                transitions++;
            }
        }
    }
    assert_int_equal(transitions, 57);
}

static void expected_table_has_a_column_for_every_event(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        int columns = 0;
        for (const char *cell = expected[i].to; *cell; cell++)
            columns += *cell != ' ';
        assert_int_equal(columns, EVENT_COUNT);
    }
}

static void run_that_has_started_once_does_not_expire(void **state)
{
    (void)state;
    struct run run = run_in(RUN_QUEUED, EXECUTION_QUEUED);
    run.attempt = 1;
    assert_conflict(run, EVENT_TTL_OVER);
    run = run_in(RUN_PENDING_VERSION, EXECUTION_CREATED);
    run.attempt = 1;
    assert_conflict(run, EVENT_TTL_OVER);
}

static void final_status_is_never_left(void **state)
{
    (void)state;
    for (int status = 0; status < RUN_STATUS_COUNT; status++) {
        struct run run = run_in(status, EXECUTION_FINISHED);
        assert_int_equal(run_is_final(&run), status >= RUN_CANCELED);
        for (int event = 0; event < EVENT_COUNT; event++)
            assert_conflict(run, event);
    }
}

static void every_status_that_clients_know_is_reached(void **state)
{
    (void)state;
    /* The paths from QUEUED; -1 ends them. */
    static const struct {
        const char *word;
        int events[5];
    } ways[] = {
        { "QUEUED", { -1 } },
        { "WAITING_FOR_DEPLOY", { EVENT_NO_VERSION, -1 } },
        { "EXECUTING", { EVENT_DEQUEUED, EVENT_STARTED, -1 } },
        { "REATTEMPTING", { EVENT_DEQUEUED, EVENT_STARTED, EVENT_RETRY_SOON, -1 } },
        { "FROZEN", { EVENT_DEQUEUED, EVENT_STARTED, EVENT_WAIT, -1 } },
        { "COMPLETED", { EVENT_DEQUEUED, EVENT_STARTED, EVENT_SUCCEEDED, -1 } },
        { "CANCELED", { EVENT_CANCEL, -1 } },
        { "FAILED", { EVENT_DEQUEUED, EVENT_STARTED, EVENT_FAILED, -1 } },
        { "CRASHED", { EVENT_DEQUEUED, EVENT_STARTED, EVENT_CRASHED, -1 } },
        { "INTERRUPTED", { EVENT_DEQUEUED, EVENT_STARTED, EVENT_INTERRUPTED, -1 } },
        { "SYSTEM_FAILURE", { EVENT_DEQUEUED, EVENT_SYSTEM_FAILURE, -1 } },
        { "EXPIRED", { EVENT_TTL_OVER, -1 } },
        { "TIMED_OUT", { EVENT_DEQUEUED, EVENT_STARTED, EVENT_TIMED_OUT, -1 } },
    };
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        struct run run = run_in(RUN_DELAYED, EXECUTION_DELAYED);
        assert_string_equal(run_status_name(run.status, VOCABULARY_A), "DELAYED");
        assert_int_equal(run_advance(&run, EVENT_DELAY_OVER, NOW), OK);
        for (const int *event = ways[i].events; *event >= 0; event++)
            assert_int_equal(run_advance(&run, *event, NOW), OK);
        assert_string_equal(run_status_name(run.status, VOCABULARY_A), ways[i].word);
    }
    assert_int_equal(sizeof(ways) / sizeof(ways[0]) + 1, 14);
}

static void canceled_run_is_finished_when_its_worker_confirms(void **state)
{
    (void)state;
    struct run run = run_in(RUN_EXECUTING, EXECUTION_EXECUTING);
    assert_int_equal(run_advance(&run, EVENT_CANCEL, NOW), OK);
    assert_string_equal(run_status_name(run.status, VOCABULARY_A), "CANCELED");
    assert_string_equal(run_execution_name(run.execution), "PENDING_CANCEL");
    assert_int_equal(run.finished_at, 0);
    assert_false(run_holds_slot(&run));

    assert_int_equal(run_advance(&run, EVENT_CANCEL, NOW + 1), OK);
    assert_int_equal(run_advance(&run, EVENT_CANCEL_CONFIRMED, NOW + 2), OK);
    assert_int_equal(run.finished_at, NOW + 2);
    assert_int_equal(run.snapshot, 8);
}

/* ---- errors: the end that an attempt's error means for its run ---- */

/* A word is the code of an internal error. */
static const struct {
    const char *error;
    enum run_event event;
    bool retriable;
} error_cases[] = {
    { "{\"type\":\"BUILT_IN_ERROR\",\"name\":\"Error\",\"message\":\"x\"}", EVENT_FAILED,
      true },
    { "{\"type\":\"CUSTOM_ERROR\",\"raw\":\"{}\"}", EVENT_FAILED, true },
    { "{\"type\":\"STRING_ERROR\",\"raw\":\"TASK_RUN_CRASHED\"}", EVENT_FAILED, true },
    { "{\"type\":\"BUILT_IN_ERROR\",\"code\":\"TASK_RUN_CRASHED\"}", EVENT_FAILED, true },
    { "TASK_INPUT_ERROR", EVENT_FAILED, true },
    { "TASK_OUTPUT_ERROR", EVENT_FAILED, true },
    { "TASK_MIDDLEWARE_ERROR", EVENT_FAILED, true },
    { "TASK_RUN_UNCAUGHT_EXCEPTION", EVENT_FAILED, true },
    { "RECURSIVE_WAIT_DEADLOCK", EVENT_FAILED, false },
    { "TASK_RUN_STALLED_EXECUTING", EVENT_FAILED, true },
    { "TASK_RUN_STALLED_EXECUTING_WITH_WAITPOINTS", EVENT_FAILED, true },
    { "TASK_RUN_CANCELLED", EVENT_INTERRUPTED, false },
    { "MAX_DURATION_EXCEEDED", EVENT_TIMED_OUT, false },
    { "TASK_PROCESS_OOM_KILLED", EVENT_CRASHED, false },
    { "TASK_PROCESS_MAYBE_OOM_KILLED", EVENT_CRASHED, false },
    { "TASK_PROCESS_SIGSEGV", EVENT_CRASHED, true },
    { "TASK_PROCESS_EXITED_WITH_NON_ZERO_CODE", EVENT_CRASHED, true },
    { "TASK_RUN_CRASHED", EVENT_CRASHED, true },
    { "DISK_SPACE_EXCEEDED", EVENT_CRASHED, false },
    { "OUTDATED_SDK_VERSION", EVENT_CRASHED, false },
    { "HANDLE_ERROR_ERROR", EVENT_CRASHED, true },
    { "COULD_NOT_FIND_EXECUTOR", EVENT_SYSTEM_FAILURE, false },
    { "COULD_NOT_FIND_TASK", EVENT_SYSTEM_FAILURE, false },
    { "COULD_NOT_IMPORT_TASK", EVENT_SYSTEM_FAILURE, false },
    { "CONFIGURED_INCORRECTLY", EVENT_SYSTEM_FAILURE, false },
    { "TASK_ALREADY_RUNNING", EVENT_SYSTEM_FAILURE, false },
    { "TASK_EXECUTION_FAILED", EVENT_SYSTEM_FAILURE, true },
    { "TASK_EXECUTION_ABORTED", EVENT_SYSTEM_FAILURE, true },
    { "TASK_PROCESS_SIGKILL_TIMEOUT", EVENT_SYSTEM_FAILURE, false },
    { "TASK_PROCESS_SIGTERM", EVENT_SYSTEM_FAILURE, true },
    { "GRACEFUL_EXIT_TIMEOUT", EVENT_SYSTEM_FAILURE, true },
    { "TASK_RUN_HEARTBEAT_TIMEOUT", EVENT_SYSTEM_FAILURE, false },
    { "POD_EVICTED", EVENT_SYSTEM_FAILURE, true },
    { "POD_UNKNOWN_ERROR", EVENT_SYSTEM_FAILURE, true },
    { "TASK_HAS_N0_EXECUTION_SNAPSHOT", EVENT_SYSTEM_FAILURE, false },
    { "TASK_DEQUEUED_INVALID_STATE", EVENT_SYSTEM_FAILURE, false },
    { "TASK_DEQUEUED_QUEUE_NOT_FOUND", EVENT_SYSTEM_FAILURE, false },
    { "TASK_RUN_DEQUEUED_MAX_RETRIES", EVENT_SYSTEM_FAILURE, false },
    { "TASK_DID_CONCURRENT_WAIT", EVENT_SYSTEM_FAILURE, false },
    { "BATCH_ITEM_COULD_NOT_TRIGGER", EVENT_SYSTEM_FAILURE, false },
    { "PAYLOAD_TOO_LARGE", EVENT_SYSTEM_FAILURE, false },
    { "UNSPECIFIED_ERROR", EVENT_SYSTEM_FAILURE, false },
    { "SOMETHING_NEW", EVENT_SYSTEM_FAILURE, true },
    { "COULD_NOT", EVENT_SYSTEM_FAILURE, true },
    { "TASK_RUN_CRASHED_TWICE", EVENT_SYSTEM_FAILURE, true },
    /* other spellings, and errors that no worker sends */
    { " { \"code\" : \"\\u0054ASK_RUN_CRASHED\" , \"type\" : \"INTERNAL\\u005fERROR\" } ",
      EVENT_CRASHED, true },
    { "{\"type\":\"INTERNAL_ERROR\"}", EVENT_SYSTEM_FAILURE, true },
    { "{\"type\":\"INTERNAL_ERROR\",\"code\":17}", EVENT_SYSTEM_FAILURE, true },
    { "{}", EVENT_FAILED, true },
    { "\"boom\"", EVENT_FAILED, true },
    { "null", EVENT_FAILED, true },
    { NULL, EVENT_FAILED, true },
};

static struct slice error_json(size_t i)
{
    static char json[256];
    const char *error = error_cases[i].error;
    if (!error || !isupper((unsigned char)error[0]))
        return slice_of(error);
    snprintf(json, sizeof(json), "{\"type\":\"INTERNAL_ERROR\",\"code\":\"%s\"}", error);
    return slice_of(json);
}

static void error_decides_the_final_status_and_whether_to_retry(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(error_cases) / sizeof(error_cases[0]); i++) {
        struct slice json = error_json(i);
        assert_int_equal(run_event_of_error(json, false), error_cases[i].event);
        assert_int_equal(run_error_is_retriable(json), error_cases[i].retriable);
    }
}

static void only_stalled_runs_have_another_status_in_dev(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(error_cases) / sizeof(error_cases[0]); i++) {
        struct slice json = error_json(i);
        bool stalled = error_cases[i].error && strstr(error_cases[i].error, "_STALLED_");
        assert_int_equal(run_event_of_error(json, true),
                         stalled ? EVENT_INTERRUPTED : error_cases[i].event);
    }
}

static void errors_count_as_out_of_memory_as_in_trigger_dev(void **state)
{
    (void)state;
#define EXIT                                                                               \
    "{\"type\":\"INTERNAL_ERROR\",\"code\":\"TASK_PROCESS_EXITED_WITH_NON_ZERO_CODE\""
#define THROWN "{\"type\":\"BUILT_IN_ERROR\",\"name\":\"Error\",\"message\":"
    static const struct {
        const char *error;
        bool is_out_of_memory;
    } cases[] = {
        { "{\"type\":\"INTERNAL_ERROR\",\"code\":\"TASK_PROCESS_OOM_KILLED\"}", true },
        { "{\"type\":\"INTERNAL_ERROR\",\"code\":\"TASK_PROCESS_MAYBE_OOM_KILLED\"}",
          true },
        { EXIT ",\"message\":\"Process exited with code -1 after signal SIGKILL.\"}",
          true },
        { EXIT ",\"message\":\"Process exited with code 137 after signal SIGKILL.\"}",
          false },
        { EXIT ",\"message\":\"Process exited with code -1 after signal SIGTERM.\"}",
          false },
        { EXIT
          ",\"message\":\"code -1, SIGABRT\",\"stackTrace\":\"<--- Last few GCs --->\\n"
          "FATAL ERROR: Reached heap limit Allocation failed\"}",
          true },
        { EXIT ",\"message\":\"code -1, SIGABRT\","
               "\"stackTrace\":\"JavaScript heap out of memory\"}",
          true },
        { EXIT ",\"message\":\"code -1, SIGABRT\",\"stackTrace\":\"abort\"}", false },
        { EXIT ",\"message\":\"code -1, SIGABRT\"}", false },
        { EXIT "}", false },
        { EXIT ",\"message\":-1}", false },
        { "{\"type\":\"INTERNAL_ERROR\",\"code\":\"TASK_RUN_CRASHED\","
          "\"message\":\"-1 SIGKILL\"}",
          false },
        { THROWN "\"ffmpeg was killed with signal SIGKILL\"}", true },
        { THROWN "\"Error: ffmpeg was killed with signal SIGKILL (9)\"}", true },
        { THROWN "\"ffmpeg was killed with signal SIGTERM\"}", false },
        { THROWN "\"MANUAL_OOM_KILL_ERROR\"}", true },
        { THROWN "\"not MANUAL_OOM_KILL_ERROR\"}", false },
        { THROWN "\"\"}", false },
        { "{\"type\":\"STRING_ERROR\",\"raw\":\"ffmpeg was killed with signal SIGKILL\"}",
          false },
        { "\"ffmpeg was killed with signal SIGKILL\"", false },
    };
#undef EXIT
#undef THROWN
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        if (run_error_is_out_of_memory(slice_of(cases[i].error)) !=
            cases[i].is_out_of_memory)
            fail_msg("%s", cases[i].error);
    assert_false(run_error_is_out_of_memory((struct slice){ 0 }));
}

static void every_error_can_end_an_attempt(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(error_cases) / sizeof(error_cases[0]); i++) {
        struct run run = run_in(RUN_EXECUTING, EXECUTION_EXECUTING);
        enum run_event event = run_event_of_error(error_json(i), true);
        assert_int_equal(run_advance(&run, event, NOW), OK);
        assert_int_equal(run.execution, EXECUTION_FINISHED);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_event_in_every_state_follows_the_table),
        cmocka_unit_test(expected_table_has_a_column_for_every_event),
        cmocka_unit_test(run_that_has_started_once_does_not_expire),
        cmocka_unit_test(final_status_is_never_left),
        cmocka_unit_test(every_status_that_clients_know_is_reached),
        cmocka_unit_test(canceled_run_is_finished_when_its_worker_confirms),
        cmocka_unit_test(error_decides_the_final_status_and_whether_to_retry),
        cmocka_unit_test(only_stalled_runs_have_another_status_in_dev),
        cmocka_unit_test(errors_count_as_out_of_memory_as_in_trigger_dev),
        cmocka_unit_test(every_error_can_end_an_attempt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
