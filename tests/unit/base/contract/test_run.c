/* Tests of struct run: the names of its status that clients see, and copies of the
 * value. */
#include "tests/support/world/unit.h"

#include <stdio.h>

#include "base/mem.h"
#include "core/model/run_end.h"
#include "runcast/run.h"

static unsigned bit(enum run_status status)
{
    return 1U << status;
}

static struct bytes *text(const char *content)
{
    return bytes_create(slice_of(content));
}

/* ---- names ---- */

static void status_names_follow_the_vocabulary(void **state)
{
    (void)state;
    static const struct {
        enum run_status status;
        const char *a, *b, *internal;
    } cases[] = {
        { RUN_DELAYED, "DELAYED", "DELAYED", "DELAYED" },
        { RUN_PENDING_VERSION, "WAITING_FOR_DEPLOY", "PENDING_VERSION", "PENDING_VERSION" },
        { RUN_QUEUED, "QUEUED", "QUEUED", "PENDING" },
        { RUN_DEQUEUED, "EXECUTING", "DEQUEUED", "DEQUEUED" },
        { RUN_EXECUTING, "EXECUTING", "EXECUTING", "EXECUTING" },
        { RUN_RETRYING, "REATTEMPTING", "EXECUTING", "RETRYING_AFTER_FAILURE" },
        { RUN_WAITING, "FROZEN", "WAITING", "WAITING_TO_RESUME" },
        { RUN_CANCELED, "CANCELED", "CANCELED", "CANCELED" },
        { RUN_COMPLETED, "COMPLETED", "COMPLETED", "COMPLETED_SUCCESSFULLY" },
        { RUN_FAILED, "FAILED", "FAILED", "COMPLETED_WITH_ERRORS" },
        { RUN_INTERRUPTED, "INTERRUPTED", "FAILED", "INTERRUPTED" },
        { RUN_CRASHED, "CRASHED", "CRASHED", "CRASHED" },
        { RUN_SYSTEM_FAILURE, "SYSTEM_FAILURE", "SYSTEM_FAILURE", "SYSTEM_FAILURE" },
        { RUN_EXPIRED, "EXPIRED", "EXPIRED", "EXPIRED" },
        { RUN_TIMED_OUT, "TIMED_OUT", "TIMED_OUT", "TIMED_OUT" },
    };
    assert_int_equal(sizeof(cases) / sizeof(cases[0]), RUN_STATUS_COUNT);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        enum run_status status = cases[i].status;
        assert_string_equal(run_status_name(status, VOCABULARY_A), cases[i].a);
        assert_string_equal(run_status_name(status, VOCABULARY_B), cases[i].b);
        assert_string_equal(run_status_name(status, VOCABULARY_INTERNAL),
                            cases[i].internal);
    }
}

static void status_filter_matches_the_vocabulary(void **state)
{
    (void)state;
    static const struct {
        const char *word;
        enum vocabulary vocabulary;
        unsigned set;
    } cases[] = {
        { "EXECUTING", VOCABULARY_A, 1 << RUN_EXECUTING | 1 << RUN_DEQUEUED },
        { "EXECUTING", VOCABULARY_B, 1 << RUN_EXECUTING | 1 << RUN_RETRYING },
        { "EXECUTING", VOCABULARY_INTERNAL, 1 << RUN_EXECUTING },
        { "FAILED", VOCABULARY_A, 1 << RUN_FAILED },
        { "FAILED", VOCABULARY_B, 1 << RUN_FAILED | 1 << RUN_INTERRUPTED },
        { "QUEUED", VOCABULARY_A, 1 << RUN_QUEUED },
        { "QUEUED", VOCABULARY_B, 1 << RUN_QUEUED },
        { "QUEUED", VOCABULARY_INTERNAL, 1 << RUN_QUEUED },
        { "PENDING", VOCABULARY_INTERNAL, 1 << RUN_QUEUED },
        /* words of the other vocabulary */
        { "DEQUEUED", VOCABULARY_A, 1 << RUN_DEQUEUED },
        { "WAITING", VOCABULARY_A, 1 << RUN_WAITING },
        { "PENDING_VERSION", VOCABULARY_A, 1 << RUN_PENDING_VERSION },
        { "REATTEMPTING", VOCABULARY_B, 1 << RUN_RETRYING },
        { "FROZEN", VOCABULARY_B, 1 << RUN_WAITING },
        { "INTERRUPTED", VOCABULARY_B, 1 << RUN_INTERRUPTED },
        { "WAITING_FOR_DEPLOY", VOCABULARY_B, 1 << RUN_PENDING_VERSION },
        /* not a word of this vocabulary */
        { "PENDING", VOCABULARY_A, 0 },
        { "COMPLETED_SUCCESSFULLY", VOCABULARY_B, 0 },
        { "completed", VOCABULARY_A, 0 },
        { "", VOCABULARY_A, 0 },
        { NULL, VOCABULARY_B, 0 },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_int_equal(run_statuses_named(slice_of(cases[i].word), cases[i].vocabulary),
                         cases[i].set);
}

static void every_status_name_filters_its_status(void **state)
{
    (void)state;
    for (int status = 0; status < RUN_STATUS_COUNT; status++) {
        for (int shown = VOCABULARY_A; shown <= VOCABULARY_INTERNAL; shown++) {
            const char *word = run_status_name(status, shown);
            assert_true(run_statuses_named(slice_of(word), shown) & bit(status));
        }
    }
}

static void executions_have_names_that_workers_accept(void **state)
{
    (void)state;
    static const char *const words[] = {
        "RUN_CREATED",       "DELAYED",   "QUEUED",
        "PENDING_EXECUTING", "EXECUTING", "EXECUTING_WITH_WAITPOINTS",
        "PENDING_CANCEL",    "FINISHED",
    };
    assert_int_equal(sizeof(words) / sizeof(words[0]), EXECUTION_COUNT);
    for (int i = 0; i < EXECUTION_COUNT; i++)
        assert_string_equal(run_execution_name(i), words[i]);
}

static void machines_are_found_by_name_with_their_size(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double cpu, memory_gb;
    } cases[] = {
        { "micro", 0.25, 0.25 }, { "small-1x", 0.5, 0.5 }, { "small-2x", 1, 1 },
        { "medium-1x", 1, 2 },   { "medium-2x", 2, 4 },    { "large-1x", 4, 8 },
        { "large-2x", 8, 16 },
    };
    assert_int_equal(sizeof(cases) / sizeof(cases[0]), MACHINE_COUNT);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        enum machine machine;
        assert_int_equal(machine_from_name(slice_of(cases[i].name), &machine), OK);
        assert_string_equal(machine_name(machine), cases[i].name);
        assert_true(machine_cpu(machine) == cases[i].cpu);
        assert_true(machine_memory_gb(machine) == cases[i].memory_gb);
    }

    enum machine untouched = MACHINE_LARGE_1X;
    static const char *const unknown[] = { "small", "Small-1x", "small-1x ", "", NULL };
    for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++)
        assert_int_equal(machine_from_name(slice_of(unknown[i]), &untouched), ERR_INVALID);
    assert_int_equal(untouched, MACHINE_LARGE_1X);
}

static void each_snapshot_has_a_name_of_its_own(void **state)
{
    (void)state;
    char id[64];
    struct run run = { .id = "run_123456789abcdefghijkm", .snapshot = 7 };
    run_snapshot_id(&run, id);
    assert_string_equal(id, "snapshot_run_123456789abcdefghijkm-n0000000007");
    run.snapshot = UINT32_MAX;
    run_snapshot_id(&run, id);
    assert_string_equal(id, "snapshot_run_123456789abcdefghijkm-n4294967295");
}

/* The controller of a deployed run drops a snapshot unless its id is the greater text. */
static void a_newer_snapshot_is_the_greater_text(void **state)
{
    (void)state;
    char older[64] = "snapshot_run_123456789abcdefghijkm-9",
         newer[64]; /* ids of the form that earlier versions made */
    struct run run = { .id = "run_123456789abcdefghijkm", .snapshot = 1 };
    for (; run.snapshot < 200; run.snapshot++) {
        run_snapshot_id(&run, newer);
        assert_true(strcmp(older, newer) < 0);
        assert_true(run_is_newest(&run, slice_of(newer)));
        assert_false(run_is_newest(&run, slice_of(older)));
        memcpy(older, newer, sizeof(older));
    }
}

static void the_short_name_of_a_snapshot_is_still_known(void **state)
{
    (void)state;
    struct run run = { .id = "run_123456789abcdefghijkm", .snapshot = 12 };
    assert_true(run_is_newest(&run, SLICE("snapshot_run_123456789abcdefghijkm-12")));
    assert_false(run_is_newest(&run, SLICE("snapshot_run_123456789abcdefghijkm-11")));
    assert_false(run_is_newest(&run, SLICE("snapshot_run_123456789abcdefghijkm-012")));
}

/* ---- values ---- */

typedef void text_fn(struct bytes **place, int number);

/* Calls fn for every text of the run and of its rare part. */
static void for_each_text(struct run *run, text_fn *fn)
{
    struct run_rare *rare = run->rare;
    for (struct bytes **place = &run->task; place <= &run->error; place++)
        if ((void *)place != (void *)&run->tags && (void *)place != (void *)&run->rare)
            fn(place, (int)(place - &run->task));
    for (struct bytes **place = &rare->concurrency_key; place <= &rare->output_type;
         place++)
        fn(place, 100 + (int)(place - &rare->concurrency_key));
}

static void put_text(struct bytes **place, int number)
{
    char content[32];
    snprintf(content, sizeof(content), "text %d", number);
    *place = text(content);
}

static void assert_only_holder(struct bytes **place, int number)
{
    char content[32];
    snprintf(content, sizeof(content), "text %d", number);
    assert_true(slice_is(bytes_slice(*place), content));
    assert_int_equal((*place)->refs, 1);
}

/* Makes a run with a different text in every place. */
static void fill(struct run *run)
{
    *run = (struct run){ .id = "run_1", .status = RUN_EXECUTING, .attempt = 3 };
    run_rare_edit(run)->priority_ms = 7;
    for_each_text(run, put_text);
    struct slice tags[] = { SLICE("a"), SLICE("b"), SLICE("a") };
    run->tags = tag_list_create(tags, sizeof(tags) / sizeof(tags[0]));
}

/* ASan reports bytes that leak or are freed twice. */
static void a_copy_outlives_its_original(void **state)
{
    (void)state;
    struct run original, copy;
    fill(&original);
    run_copy(&copy, &original);
    assert_ptr_equal(copy.payload, original.payload);
    assert_int_equal(copy.payload->refs, 2);
    assert_int_equal(copy.tags->refs, 2);
    assert_int_equal(copy.attempt, 3);

    bytes_set(&original.output, NULL);
    run_finish(&original);
    for_each_text(&copy, assert_only_holder);
    assert_int_equal(copy.tags->refs, 1);
    run_finish(&copy);
}

static void editing_the_rare_part_of_a_run_leaves_its_copies_alone(void **state)
{
    (void)state;
    struct run original, copy;
    fill(&original);
    run_copy(&copy, &original);
    assert_ptr_equal(run_rare(&copy), run_rare(&original));

    bytes_clear(&run_rare_edit(&copy)->parent);
    run_rare_edit(&copy)->priority_ms = 8;
    assert_non_null(run_rare(&original)->parent);
    assert_int_equal(run_rare(&original)->priority_ms, 7);
    assert_null(run_rare(&copy)->parent);
    assert_int_equal(run_rare(&copy)->priority_ms, 8);
    assert_ptr_equal(run_rare(&copy)->root, run_rare(&original)->root);
    run_finish(&copy);
    assert_true(slice_is(bytes_slice(run_rare(&original)->parent), "text 104"));

    struct run_rare *own = original.rare;
    assert_ptr_equal(run_rare_edit(&original), own); /* no other run still shares it */
    run_finish(&original);
}

static void a_run_without_a_rare_part_reads_as_unset(void **state)
{
    (void)state;
    struct run run = { 0 };
    assert_null(run_rare(&run)->ttl);
    assert_int_equal(run_rare(&run)->delayed_until, 0);
    assert_null(run.rare);
    run_rare_edit(&run)->ttl = text("1h");
    assert_true(slice_is(bytes_slice(run_rare(&run)->ttl), "1h"));
    run_finish(&run);
    assert_null(run.rare);
}

static void a_field_is_found_by_its_offset_in_either_part(void **state)
{
    (void)state;
    struct run run;
    fill(&run);
    assert_ptr_equal(run_field(&run, offsetof(struct run, error)), &run.error);
    assert_ptr_equal(run_field(&run, rare_offset(refs)), &run.rare->refs);
    assert_ptr_equal(run_field(&run, rare_offset(waits)), &run.rare->waits);
    run_finish(&run);
    assert_ptr_equal(run_field(&run, rare_offset(waits)), &run_rare_none.waits);
}

static void finishing_a_run_twice_or_zeroed_is_harmless(void **state)
{
    (void)state;
    struct run run = { 0 };
    run_finish(&run);
    fill(&run);
    run_finish(&run);
    run_finish(&run);
    assert_null(run.task);
    assert_null(run.tags);
}

static void tags_keep_their_order_and_their_duplicates(void **state)
{
    (void)state;
    struct slice names[] = { SLICE("b"), SLICE("a"), SLICE("b") };
    struct run run = { .tags = tag_list_create(names, sizeof(names) / sizeof(names[0])) };
    assert_int_equal(run.tags->count, 3);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        assert_true(slice_equal(bytes_slice(run.tags->names[i]), names[i]));
    run_finish(&run);

    assert_null(tag_list_create(NULL, 0));
    assert_null(tag_list_ref(NULL));
    tag_list_unref(NULL);
}

static void repeated_names_are_stored_once_after_sharing(void **state)
{
    (void)state;
    struct run one, two;
    fill(&one);
    fill(&two);
    run_share_names(&one);
    run_share_names(&two);
    const void *names[][2] = {
        { one.task, two.task },
        { one.queue, two.queue },
        { one.worker_version, two.worker_version },
        { one.batch, two.batch },
        { one.rare->payload_type, two.rare->payload_type },
        { one.rare->output_type, two.rare->output_type },
        { one.rare->parent, two.rare->parent },
        { one.tags, two.tags },
        { one.tags->names[0], one.tags->names[2] },
    };
    const size_t count = sizeof(names) / sizeof(names[0]);
    size_t same = 0;
    for (size_t i = 0; i < count; i++)
        same += names[i][0] == names[i][1];
    assert_in_range(same, count - 2, count); /* two names of the same slot are held twice */
    assert_ptr_not_equal(one.payload, two.payload);
    assert_true(slice_is(bytes_slice(two.task), "text 0"));
    run_finish(&one);
    assert_true(slice_is(bytes_slice(two.task), "text 0"));
    run_finish(&two);

    struct run empty = { 0 };
    run_share_names(&empty);
    assert_null(empty.task);
    tag_list_forget_shared();
    bytes_forget_shared();
}

static void packet_bytes_count_each_text_on_the_heap_once(void **state)
{
    (void)state;
    struct run run = { 0 };
    assert_int_equal(run_packet_bytes(&run), 0);

    run.payload = text("12345");
    size_t five = run_packet_bytes(&run);
    assert_true(five >= 5 + sizeof(struct bytes));
    run.output = text("12345");
    run.error = text("12345");
    run.metadata = text("12345");
    assert_int_equal(run_packet_bytes(&run), 4 * five);

    run.metadata_seed = bytes_ref(run.metadata);
    assert_int_equal(run_packet_bytes(&run), 4 * five);
    bytes_set(&run.metadata_seed, NULL);
    run.metadata_seed = text("12345");
    assert_int_equal(run_packet_bytes(&run), 5 * five);

    run.task = text("not a packet");
    run_rare_edit(&run)->output_type = text("not a packet");
    assert_int_equal(run_packet_bytes(&run), 5 * five);
    run_finish(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(status_names_follow_the_vocabulary),
        cmocka_unit_test(status_filter_matches_the_vocabulary),
        cmocka_unit_test(every_status_name_filters_its_status),
        cmocka_unit_test(executions_have_names_that_workers_accept),
        cmocka_unit_test(machines_are_found_by_name_with_their_size),
        cmocka_unit_test(each_snapshot_has_a_name_of_its_own),
        cmocka_unit_test(a_newer_snapshot_is_the_greater_text),
        cmocka_unit_test(the_short_name_of_a_snapshot_is_still_known),
        cmocka_unit_test(a_copy_outlives_its_original),
        cmocka_unit_test(editing_the_rare_part_of_a_run_leaves_its_copies_alone),
        cmocka_unit_test(a_run_without_a_rare_part_reads_as_unset),
        cmocka_unit_test(a_field_is_found_by_its_offset_in_either_part),
        cmocka_unit_test(finishing_a_run_twice_or_zeroed_is_harmless),
        cmocka_unit_test(tags_keep_their_order_and_their_duplicates),
        cmocka_unit_test(repeated_names_are_stored_once_after_sharing),
        cmocka_unit_test(packet_bytes_count_each_text_on_the_heap_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
