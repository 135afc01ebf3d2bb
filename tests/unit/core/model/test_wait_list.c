/* The waits of a run are read as they were written. */
#include "core/model/wait_list.h"
#include "tests/support/world/unit.h"

/* Writes a list of these waits, as a run has it. */
static struct bytes *write(const struct wait *waits, size_t count)
{
    struct buf list = { 0 };
    buf_add_char(&list, '[');
    for (size_t i = 0; i < count; i++)
        wait_list_add(&list, &waits[i]);
    buf_add_char(&list, ']');
    assert_true(scan_is_json(buf_slice(&list)));
    return buf_take(&list);
}

/* A run that is blocked by these waits. */
static struct run blocked_by(const struct wait *waits, size_t count)
{
    struct run run = { .status = RUN_WAITING, .execution = EXECUTION_WITH_WAITPOINTS };
    run_rare_edit(&run)->waits = write(waits, count);
    return run;
}

static void assert_slice(struct slice slice, struct slice expected)
{
    assert_int_equal(slice.ptr == NULL, expected.ptr == NULL);
    assert_true(slice_equal(slice, expected));
}

static void assert_same(const struct wait *wait, const struct wait *expected)
{
    assert_int_equal(wait->type, expected->type);
    assert_slice(wait->id, expected->id);
    assert_slice(wait->batch, expected->batch);
    assert_int_equal(wait->index, expected->index);
    assert_int_equal(wait->too_large, expected->too_large);
    assert_slice(wait->stream, expected->stream);
    assert_int_equal(wait->from, expected->from);
    assert_int_equal(wait->until, expected->until);
    assert_int_equal(wait->completed_at, expected->completed_at);
}

static const struct wait each_kind[] = {
    { .type = WAIT_TIME, .id = SLICE("waitpoint_a"), .until = INT64_C(1732000000000) },
    { .type = WAIT_RUN, .id = SLICE("run_a") },
    { .type = WAIT_RUN,
      .id = SLICE("run_b"),
      .batch = SLICE("batch_a"),
      .index = 3,
      .completed_at = INT64_C(1732000000001) },
    { .type = WAIT_RUN,
      .id = SLICE("run_c"),
      .batch = SLICE("batch_a"),
      .index = UINT32_MAX,
      .too_large = true,
      .completed_at = 1 },
    { .type = WAIT_TOKEN, .id = SLICE("waitpoint_b") },
    { .type = WAIT_TOKEN, .id = SLICE("waitpoint_c"), .until = 1 },
    { .type = WAIT_TOKEN,
      .id = SLICE("waitpoint_d"),
      .stream = SLICE("\"a \\\"key\\\"\""),
      .from = INT64_C(9007199254740993),
      .until = INT64_MAX },
};

enum { KINDS = sizeof(each_kind) / sizeof(each_kind[0]) };

static void every_kind_of_wait_is_read_as_it_was_written_in_order(void **state)
{
    struct wait wait;
    (void)state;
    struct run run = blocked_by(each_kind, KINDS);
    struct scan_members all = wait_list_of(&run);
    for (size_t i = 0; i < KINDS; i++) {
        assert_true(wait_list_next(&all, &wait));
        assert_same(&wait, &each_kind[i]);
    }
    assert_false(wait_list_next(&all, &wait));
    assert_false(wait_list_next(&all, &wait));
    run_finish(&run);
}

/* Later versions read stored lists, so the words must not change. */
static void stored_form_of_a_list_does_not_change(void **state)
{
    (void)state;
    struct bytes *list = write(each_kind, KINDS);
    assert_string_equal(
        list->data,
        "[{\"type\":\"DATETIME\",\"id\":\"waitpoint_a\",\"until\":1732000000000},"
        "{\"type\":\"RUN\",\"id\":\"run_a\"},"
        "{\"type\":\"RUN\",\"id\":\"run_b\",\"batch\":\"batch_a\",\"index\":3,"
        "\"completedAt\":1732000000001},"
        "{\"type\":\"RUN\",\"id\":\"run_c\",\"batch\":\"batch_a\",\"index\":4294967295,"
        "\"tooLarge\":true,\"completedAt\":1},"
        "{\"type\":\"MANUAL\",\"id\":\"waitpoint_b\"},"
        "{\"type\":\"MANUAL\",\"id\":\"waitpoint_c\",\"until\":1},"
        "{\"type\":\"MANUAL\",\"id\":\"waitpoint_d\",\"stream\":\"a \\\"key\\\"\","
        "\"from\":9007199254740993,\"until\":9223372036854775807}]");
    bytes_unref(list);
}

static void run_without_a_list_waits_for_nothing(void **state)
{
    struct wait wait;
    (void)state;
    struct run none = { 0 }, empty = blocked_by(NULL, 0);
    struct scan_members all = wait_list_of(&none);
    assert_false(wait_list_next(&all, &wait));
    all = wait_list_of(&empty);
    assert_false(wait_list_next(&all, &wait));
    assert_false(wait_list_has_input(&none, SLICE("key"), &wait));
    run_finish(&empty);
}

/* Does as waits.c when something came: writes the list again, with completedAt where
 * due. */
static void waits_that_were_read_are_written_again_unchanged(void **state)
{
    struct wait wait;
    struct buf again = { 0 };
    (void)state;
    struct run run = blocked_by(each_kind, KINDS);
    struct scan_members all = wait_list_of(&run);
    buf_add_char(&again, '[');
    while (wait_list_next(&all, &wait))
        wait_list_add(&again, &wait);
    buf_add_char(&again, ']');
    assert_slice(buf_slice(&again), bytes_slice(run_rare(&run)->waits));
    buf_finish(&again);
    run_finish(&run);
}

/* ---- the token that the next record of an input completes ---- */

static const struct wait for_inputs[] = {
    { .type = WAIT_RUN, .id = SLICE("run_a") },
    { .type = WAIT_TOKEN,
      .id = SLICE("waitpoint_a"),
      .stream = SLICE("\"key\""),
      .from = 4,
      .completed_at = 1 },
    { .type = WAIT_TOKEN,
      .id = SLICE("waitpoint_b"),
      .stream = SLICE("\"a \\\"key\\\"\""),
      .from = 5 },
    { .type = WAIT_TOKEN,
      .id = SLICE("waitpoint_c"),
      .stream = SLICE("\"key\""),
      .from = 6 },
    { .type = WAIT_TOKEN,
      .id = SLICE("waitpoint_d"),
      .stream = SLICE("\"key\""),
      .from = 7 },
};

enum { INPUTS = sizeof(for_inputs) / sizeof(for_inputs[0]) };

static void first_pending_token_of_an_input_is_found(void **state)
{
    struct wait wait;
    (void)state;
    struct run run = blocked_by(for_inputs, INPUTS);
    assert_true(wait_list_has_input(&run, SLICE("key"), &wait));
    assert_same(&wait, &for_inputs[3]);
    assert_true(wait_list_has_input(&run, SLICE("a \"key\""), &wait));
    assert_same(&wait, &for_inputs[2]);
    run_finish(&run);
}

static void token_is_not_found_by_another_input(void **state)
{
    static const struct slice others[] = { SLICE(""), SLICE("ke"), SLICE("keys"),
                                           SLICE("KEY"), SLICE("run_a") };
    struct wait wait;
    (void)state;
    struct run run = blocked_by(for_inputs, INPUTS);
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        assert_false(wait_list_has_input(&run, others[i], &wait));
    run_finish(&run);
}

static void completed_token_is_not_found(void **state)
{
    struct wait wait;
    (void)state;
    struct run run = blocked_by(for_inputs, 2);
    assert_false(wait_list_has_input(&run, SLICE("key"), &wait));
    run_finish(&run);
}

/* The list stays in a run that has continued, but does not block it. */
static void executing_run_is_not_blocked_by_an_input(void **state)
{
    struct wait wait;
    (void)state;
    struct run run = blocked_by(for_inputs, INPUTS);
    run.execution = EXECUTION_EXECUTING;
    assert_false(wait_list_has_input(&run, SLICE("key"), &wait));
    run_finish(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_of_wait_is_read_as_it_was_written_in_order),
        cmocka_unit_test(stored_form_of_a_list_does_not_change),
        cmocka_unit_test(run_without_a_list_waits_for_nothing),
        cmocka_unit_test(waits_that_were_read_are_written_again_unchanged),
        cmocka_unit_test(first_pending_token_of_an_input_is_found),
        cmocka_unit_test(token_is_not_found_by_another_input),
        cmocka_unit_test(completed_token_is_not_found),
        cmocka_unit_test(executing_run_is_not_blocked_by_an_input),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
