/* Marks of debounced runs, and what a push changes. */
#include "core/model/debounce.h"

#include "base/buf.h"
#include "runcast/store.h"
#include "tests/support/world/unit.h"

static struct run delayed_run(int64_t created_at, int64_t until)
{
    struct run run = { .id = "run_1",
                       .status = RUN_DELAYED,
                       .execution = EXECUTION_DELAYED,
                       .created_at = created_at,
                       .due_at = until,
                       .snapshot = 1,
                       .machine = MACHINE_SMALL_1X };
    run.payload = bytes_create(SLICE("1"));
    run.metadata = bytes_create(SLICE("{\"a\":1}"));
    run_rare_edit(&run)->delayed_until = until;
    run_rare_edit(&run)->priority_ms = 5;
    run_rare_edit(&run)->waits = debounce_mark(SLICE("k"));
    return run;
}

static void mark_names_its_key_while_the_run_is_delayed(void **state)
{
    struct run run = delayed_run(0, 10);
    struct bytes *quoted = debounce_mark(SLICE("a\"]b"));
    (void)state;
    assert_string_equal(quoted->data, "[{\"type\":\"DEBOUNCE\",\"key\":\"a\\\"]b\"}]");
    assert_true(debounce_is_mark(bytes_slice(quoted)));
    assert_false(debounce_is_mark(SLICE("[{\"type\":\"RUN\",\"id\":\"run_1\"}]")));
    assert_non_null(debounce_mark_of(&run).ptr);
    run.status = RUN_QUEUED;
    assert_null(debounce_mark_of(&run).ptr);
    run.status = RUN_DELAYED;
    debounce_free_key(&run);
    assert_null(debounce_mark_of(&run).ptr);
    run_finish(&run);
    bytes_unref(quoted);
}

static void push_only_delays_further(void **state)
{
    struct debounce push = { .delay_ms = 100 };
    struct run run = delayed_run(0, 1000), with = { 0 };
    unsigned marks = 0;
    (void)state;
    assert_false(debounce_push(&push, &with, &run, 900, &marks));
    assert_int_equal(run.snapshot, 1);
    assert_true(debounce_push(&push, &with, &run, 901, &marks));
    assert_int_equal(run.due_at, 1001);
    assert_int_equal(run_rare(&run)->delayed_until, 1001);
    assert_int_equal(run.queue_position, 996);
    assert_int_equal(run.snapshot, 2);
    assert_int_equal(marks, 0);
    run_finish(&run);
}

static void trailing_push_replaces_only_the_options_that_it_names(void **state)
{
    struct debounce push = { .delay_ms = 1, .is_trailing = true };
    struct run run = delayed_run(0, 1000), with = { .max_attempts = 3 };
    unsigned marks = 0;
    (void)state;
    run.max_duration_s = 60;
    with.payload = bytes_create(SLICE("2"));
    with.tags = tag_list_create((struct slice[]){ SLICE("new") }, 1);
    with.machine = MACHINE_MICRO;
    assert_true(debounce_push(&push, &with, &run, 0, &marks));
    assert_int_equal(marks, MARK_WHOLE | MARK_PAYLOAD);
    assert_string_equal(run.payload->data, "2");
    assert_string_equal(run.metadata->data, "{\"a\":1}"); /* not named */
    assert_int_equal(run.max_attempts, 3);
    assert_int_equal(run.max_duration_s, 60);
    assert_int_equal(run.machine, MACHINE_SMALL_1X); /* the task's own, not named */
    assert_int_equal(run.tags->count, 1);
    assert_int_equal(run.due_at, 1000);
    push.names_machine = true;
    with.metadata = bytes_create(SLICE("{}"));
    run_rare_edit(&with)->payload_type = bytes_create(SLICE("text/plain"));
    debounce_push(&push, &with, &run, 0, &marks);
    assert_int_equal(marks, MARK_WHOLE | MARK_PAYLOAD | MARK_METADATA);
    assert_int_equal(run.machine, MACHINE_MICRO);
    assert_string_equal(run.metadata_seed->data, "{}");
    assert_string_equal(run_rare(&run)->payload_type->data, "text/plain");
    run_finish(&run);
    run_finish(&with);
}

static void push_must_end_within_its_max_delay(void **state)
{
    struct debounce push = { .delay_ms = 100 };
    struct run run = delayed_run(1000, 1100);
    (void)state;
    assert_true(debounce_allows(&push, &run, 1000000));
    push.max_delay_ms = 500;
    assert_true(debounce_allows(&push, &run, 1400));
    assert_false(debounce_allows(&push, &run, 1401));
    run_finish(&run);
}

static void owner_of_a_claim_names_its_run(void **state)
{
    (void)state;
    assert_true(slice_is(debounce_owner_run(SLICE("run_1/x7")), "run_1"));
    assert_true(debounce_owner_is_push(SLICE("run_1/x7")));
    assert_true(slice_is(debounce_owner_run(SLICE("run_1")), "run_1"));
    assert_false(debounce_owner_is_push(SLICE("run_1")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mark_names_its_key_while_the_run_is_delayed),
        cmocka_unit_test(push_only_delays_further),
        cmocka_unit_test(trailing_push_replaces_only_the_options_that_it_names),
        cmocka_unit_test(push_must_end_within_its_max_delay),
        cmocka_unit_test(owner_of_a_claim_names_its_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
