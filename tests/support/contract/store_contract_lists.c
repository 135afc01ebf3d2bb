/* store_contract_lists.c - what every driver must do: filters, cursors, tags. */
#include <stdio.h>

#include "base/mem.h"
#include "tests/support/contract/store_contract_cases.h"

/* ---- verbs ---- */

static void on_listed(struct store_read *read, enum store_status status)
{
    assert_int_equal(status, STORE_OK);
    container_of(read, struct waiting_list, req.read)->answered = true;
}

struct waiting_list list_of(uint32_t env)
{
    return (struct waiting_list){ .req = { .read = { READ_LIST, env, on_listed },
                                           .filter = { .is_test = -1 },
                                           .limit = 100 } };
}

void drop_runs(struct run *runs, size_t count)
{
    for (size_t i = 0; i < count; i++)
        run_finish(&runs[i]);
    free(runs);
}

static void ask_list(struct store_world *world, struct waiting_list *waiting)
{
    waiting->answered = false;
    waiting->req.runs = NULL;
    waiting->req.count = 0;
    world->store->ops->read(world->store, &waiting->req.read);
    assert_false(waiting->answered);
    while (!waiting->answered)
        world->turn(world);
}

size_t count_runs(struct store_world *world, uint32_t env)
{
    struct waiting_list waiting = list_of(env);
    waiting.req.limit = 10000;
    ask_list(world, &waiting);
    drop_runs(waiting.req.runs, waiting.req.count);
    return waiting.req.count;
}

void name_runs(const struct run *runs, size_t count, char out[256])
{
    size_t len = 0;
    out[0] = '\0';
    for (size_t i = 0; i < count; i++)
        len += (size_t)snprintf(out + len, 256 - len, "%s%d", i ? " " : "",
                                (int)(runs[i].created_at - FIRST_RUN_MS));
}

void assert_list(struct store_world *world, struct waiting_list *waiting,
                 const char *expected)
{
    char names[256];
    ask_list(world, waiting);
    name_runs(waiting->req.runs, waiting->req.count, names);
    assert_string_equal(names, expected);
    drop_runs(waiting->req.runs, waiting->req.count);
}

struct tag_list *tags_of(const char *first, const char *second)
{
    struct slice names[] = { slice_of(first), slice_of(second) };
    return tag_list_create(names, second ? 2 : 1);
}

/* ---- lists ---- */

/* A run whose payload, or output, is the stored packet "p/1". */
static void name_packet(struct change *change, bool as_output)
{
    struct run *run = &change->run;
    struct run_rare *rare = run_rare_edit(run);
    bytes_unref(as_output ? run->output : run->payload);
    *(as_output ? &run->output : &run->payload) = text_bytes("p/1");
    *(as_output ? &rare->output_type : &rare->payload_type) =
        text_bytes("application/store");
    change->marks |= as_output ? MARK_OUTPUT : MARK_PAYLOAD;
}

void fill_runs(struct store_world *world)
{
    static const char *const tasks[] = { "a", "b", "c" };
    for (int n = 1; n <= 9; n++) {
        struct change change = new_run(ENV_A, n, tasks[(n - 1) % 3]);
        struct run *run = &change.run;
        run->tags = n % 4 == 0   ? tags_of("four", "even")
                    : n % 2 == 0 ? tags_of("even", NULL)
                                 : NULL;
        run->status = n % 2 ? RUN_COMPLETED : RUN_QUEUED;
        run->execution = n % 2 ? EXECUTION_FINISHED : EXECUTION_QUEUED;
        run->is_test = n == 5;
        run->machine = n == 6 ? MACHINE_MICRO : MACHINE_SMALL_1X;
        run->batch = n >= 8 ? text_bytes("batch_1") : NULL;
        if (n == 3 || n == 4)
            run_rare_edit(run)->parent = text_bytes("run_parent");
        if (n == 2)
            run_rare_edit(run)->schedule = text_bytes("sched_1");
        if (n >= 5 && n <= 6)
            run_rare_edit(run)->bulk = text_bytes("bulk_1");
        if (n == 7)
            run_rare_edit(run)->region = text_bytes("eu");
        if (n == 1 || n == 5)
            name_packet(&change, n == 5);
        run->worker_version = n <= 2 ? text_bytes("20240101.1") : NULL;
        assert_int_equal(commit_one(world, change), STORE_OK);
    }
    assert_int_equal(commit_one(world, new_run(ENV_B, 1, "a")), STORE_OK);
}

struct filter_case {
    struct run_filter filter;
    const char *expected;
};

static void assert_filters(struct store_world *world, const struct filter_case *cases,
                           size_t count)
{
    fill_runs(world);
    for (size_t i = 0; i < count; i++) {
        struct waiting_list waiting = list_of(ENV_A);
        waiting.req.filter = cases[i].filter;
        assert_list(world, &waiting, cases[i].expected);
        assert_false(waiting.req.more);
    }
}

static void filters_are_anded_and_their_values_ored(void **state)
{
    struct slice ab[] = { SLICE("a"), SLICE("b") }, a[] = { SLICE("a") };
    struct slice versions[] = { SLICE("20240101.1") }, eu[] = { SLICE("eu") };
    struct slice queues[] = { SLICE("task/any"), SLICE("other") }, none[] = { SLICE("no") };
    const struct filter_case cases[] = {
        { { .is_test = -1 }, "9 8 7 6 5 4 3 2 1" },
        { { .is_test = 1 }, "5" },
        { { .is_test = 0 }, "9 8 7 6 4 3 2 1" },
        { { .is_test = -1, .nothing = true }, "" },
        { { .is_test = -1, .tasks = a, .task_count = 1 }, "7 4 1" },
        { { .is_test = -1, .tasks = ab, .task_count = 2 }, "8 7 5 4 2 1" },
        { { .is_test = -1, .statuses = 1u << RUN_QUEUED }, "8 6 4 2" },
        { { .is_test = -1, .statuses = 1u << RUN_COMPLETED }, "9 7 5 3 1" },
        { { .is_test = -1, .statuses = 1u << RUN_QUEUED | 1u << RUN_COMPLETED },
          "9 8 7 6 5 4 3 2 1" },
        { { .is_test = -1, .statuses = 1u << RUN_EXPIRED }, "" },
        { { .is_test = -1, .statuses = 1u << RUN_QUEUED, .tasks = a, .task_count = 1 },
          "4" },
        { { .is_test = -1, .machines = 1u << MACHINE_MICRO }, "6" },
        { { .is_test = -1, .batch = SLICE("batch_1") }, "9 8" },
        { { .is_test = -1, .batch = SLICE("batch_2") }, "" },
        { { .is_test = -1, .parent = SLICE("run_parent") }, "4 3" },
        { { .is_test = -1, .parent = SLICE("") }, "9 8 7 6 5 2 1" },
        { { .is_test = -1, .schedule = SLICE("sched_1") }, "2" },
        { { .is_test = -1, .bulk = SLICE("bulk_1") }, "6 5" },
        { { .is_test = 1, .bulk = SLICE("bulk_1") }, "5" },
        { { .is_test = -1, .bulk = SLICE("bulk_2") }, "" },
        { { .is_test = -1, .packet = SLICE("p/1") }, "5 1" },
        { { .is_test = -1, .packet = SLICE("p/1"), .tasks = a, .task_count = 1 }, "1" },
        { { .is_test = -1, .packet = SLICE("p/2") }, "" },
        { { .is_test = -1, .versions = versions, .version_count = 1 }, "2 1" },
        { { .is_test = -1, .regions = eu, .region_count = 1 }, "7" },
        { { .is_test = -1, .queues = queues, .queue_count = 2 }, "9 8 7 6 5 4 3 2 1" },
        { { .is_test = -1, .queues = none, .queue_count = 1 }, "" },
        { { .is_test = -1, .created_from = FIRST_RUN_MS + 8 }, "9 8" },
        { { .is_test = -1, .created_to = FIRST_RUN_MS + 2 }, "2 1" },
        { { .is_test = -1,
            .created_from = FIRST_RUN_MS + 4,
            .created_to = FIRST_RUN_MS + 6 },
          "6 5 4" },
    };
    assert_filters(*state, cases, sizeof(cases) / sizeof(cases[0]));
}

static void runs_are_found_by_any_or_by_every_tag(void **state)
{
    struct slice a[] = { SLICE("a") }, even[] = { SLICE("even") };
    struct slice four[] = { SLICE("four"), SLICE("even") };
    struct slice four_five[] = { SLICE("four"), SLICE("five") };
    struct slice twice[] = { SLICE("four"), SLICE("four") };
    const struct filter_case cases[] = {
        { { .is_test = -1, .tags = even, .tag_count = 1 }, "8 6 4 2" },
        { { .is_test = -1, .tags = four, .tag_count = 2 }, "8 6 4 2" },
        { { .is_test = -1, .tags = four, .tag_count = 1 }, "8 4" },
        { { .is_test = -1, .tags = even, .tag_count = 1, .tasks = a, .task_count = 1 },
          "4" },
        { { .is_test = -1, .tags = four, .tag_count = 2, .every_tag = true }, "8 4" },
        { { .is_test = -1, .tags = four_five, .tag_count = 2, .every_tag = true }, "" },
        { { .is_test = -1, .tags = four_five, .tag_count = 2 }, "8 4" },
        { { .is_test = -1,
            .tags = four,
            .tag_count = 2,
            .every_tag = true,
            .batch = SLICE("batch_1") },
          "8" },
        { { .is_test = -1, .tags = twice, .tag_count = 2, .every_tag = true }, "8 4" },
        { { .is_test = -1, .batch = SLICE("batch_1"), .tags = even, .tag_count = 1 }, "8" },
    };
    assert_filters(*state, cases, sizeof(cases) / sizeof(cases[0]));
}

static void pages_continue_at_a_cursor_in_both_directions(void **state)
{
    struct store_world *world = *state;
    struct slice even[] = { SLICE("even") }, ab[] = { SLICE("b"), SLICE("a") };
    const struct {
        int after, before; /* 0: none */
        unsigned limit;
        bool by_tag, by_task;
        const char *expected;
        bool more;
    } cases[] = {
        { 0, 0, 4, false, false, "9 8 7 6", true },
        { 6, 0, 4, false, false, "5 4 3 2", true },
        { 2, 0, 4, false, false, "1", false },
        { 1, 0, 4, false, false, "", false },
        { 0, 5, 3, false, false, "8 7 6", true },
        { 0, 6, 3, false, false, "9 8 7", false },
        { 0, 9, 3, false, false, "", false },
        { 0, 0, 9, false, false, "9 8 7 6 5 4 3 2 1", false },
        { 0, 0, 2, true, false, "8 6", true },
        { 6, 0, 2, true, false, "4 2", false },
        { 0, 2, 2, true, false, "6 4", true },
        { 0, 0, 3, false, true, "8 7 5", true },
        { 5, 0, 3, false, true, "4 2 1", false },
        { 0, 1, 3, false, true, "5 4 2", true },
    };
    fill_runs(world);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct waiting_list waiting = list_of(ENV_A);
        waiting.req.limit = cases[i].limit;
        if (cases[i].after)
            make_run_id(cases[i].after, waiting.req.after);
        if (cases[i].before)
            make_run_id(cases[i].before, waiting.req.before);
        waiting.req.filter.tags = even;
        waiting.req.filter.tag_count = cases[i].by_tag;
        waiting.req.filter.tasks = ab;
        waiting.req.filter.task_count = cases[i].by_task ? 2 : 0;
        assert_list(world, &waiting, cases[i].expected);
        assert_int_equal(waiting.req.more, cases[i].more);
    }
}

static void a_list_brings_packets_when_asked(void **state)
{
    struct store_world *world = *state;
    struct change change = new_run(ENV_A, 1, "a");
    change.marks |= MARK_OUTPUT;
    change.run.metadata = text_bytes("{}");
    change.run.output = text_bytes("1");
    assert_int_equal(commit_one(world, change), STORE_OK);
    static const enum store_parts all[] = { STORE_FACTS_ALONE, STORE_METADATA,
                                            STORE_PACKETS };
    for (int i = 0; i < 3; i++) {
        struct waiting_list waiting = list_of(ENV_A);
        waiting.req.parts = all[i];
        ask_list(world, &waiting);
        assert_int_equal(waiting.req.count, 1);
        assert_int_equal(waiting.req.runs[0].metadata != NULL, i > 0);
        assert_int_equal(waiting.req.runs[0].payload != NULL, i == 2);
        assert_int_equal(waiting.req.runs[0].output != NULL, i == 2);
        assert_int_equal(waiting.req.seq, 1);
        drop_runs(waiting.req.runs, waiting.req.count);
    }
}

static void a_list_ends_behind_the_run_that_fills_its_bytes(void **state)
{
    struct store_world *world = *state;
    for (int n = 1; n <= 4; n++) {
        struct change change = new_run(ENV_A, n, "a");
        change.marks |= MARK_OUTPUT;
        change.run.output = text_bytes("0123456789");
        assert_int_equal(commit_one(world, change), STORE_OK);
    }
    struct waiting_list waiting = list_of(ENV_A);
    waiting.req.parts = STORE_PACKETS;
    waiting.req.byte_limit = 1;
    assert_list(world, &waiting, "4");
    assert_true(waiting.req.more);
    make_run_id(2, waiting.req.after);
    assert_list(world, &waiting, "1");
    assert_false(waiting.req.more);
}

/* ---- counts ---- */

struct waiting_count {
    struct store_count req;
    bool answered;
};

static void on_counted(struct store_read *read, enum store_status status)
{
    assert_int_equal(status, STORE_OK);
    container_of(read, struct waiting_count, req.read)->answered = true;
}

/* A count equals the length of the list without pages, for each filter of a list. */
static void a_filter_is_counted_by_status(void **state)
{
    struct store_world *world = *state;
    static struct slice even[] = { SLICE("even") }, ab[] = { SLICE("a"), SLICE("b") };
    static struct slice both[] = { SLICE("even"), SLICE("four"), SLICE("even") };
    static struct slice twice[] = { SLICE("a"), SLICE("a") };
    const struct {
        struct run_filter filter;
        unsigned queued, completed;
    } cases[] = {
        { { .is_test = -1 }, 4, 5 },
        { { .is_test = -1, .statuses = 1u << RUN_QUEUED }, 4, 0 },
        { { .is_test = -1, .tags = even, .tag_count = 1 }, 4, 0 },
        { { .is_test = -1, .tags = both, .tag_count = 3 }, 4, 0 },
        { { .is_test = -1, .tags = both, .tag_count = 2, .every_tag = true }, 2, 0 },
        { { .is_test = -1, .tasks = ab, .task_count = 2 }, 3, 3 },
        { { .is_test = -1, .tasks = twice, .task_count = 2 }, 1, 2 },
        { { .is_test = -1, .batch = SLICE("batch_1") }, 1, 1 },
        { { .is_test = -1, .parent = SLICE("run_parent") }, 1, 1 },
        { { .is_test = -1, .bulk = SLICE("bulk_1") }, 1, 1 },
        { { .is_test = 1 }, 0, 1 },
        { { .is_test = -1, .created_from = FIRST_RUN_MS + 4 }, 3, 3 },
        { { .is_test = -1, .created_to = FIRST_RUN_MS + 4 }, 2, 2 },
        { { .is_test = -1, .nothing = true }, 0, 0 },
    };
    fill_runs(world);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct waiting_count waiting = { .req = { .read = { READ_COUNT, ENV_A, on_counted },
                                                  .filter = cases[i].filter } };
        world->store->ops->read(world->store, &waiting.req.read);
        assert_false(waiting.answered);
        while (!waiting.answered)
            world->turn(world);
        for (int status = 0; status < RUN_STATUS_COUNT; status++)
            assert_int_equal(waiting.req.counts[status],
                             status == RUN_QUEUED      ? cases[i].queued
                             : status == RUN_COMPLETED ? cases[i].completed
                                                       : 0);
        assert_int_equal(waiting.req.seq, 9);
    }
}

static void a_tag_that_was_gained_is_found(void **state)
{
    struct store_world *world = *state;
    struct slice late[] = { SLICE("late") }, early[] = { SLICE("early") };
    struct change change = new_run(ENV_A, 1, "a");
    change.run.tags = tags_of("early", NULL);
    assert_int_equal(commit(world, &change, 1, NULL, 0), STORE_OK);
    change = next_version(&change, MARK_WHOLE);
    tag_list_unref(change.run.tags);
    change.run.tags = tags_of("early", "late");
    assert_int_equal(commit(world, &change, 1, NULL, 0), STORE_OK);
    change_finish(&change);

    struct waiting_list waiting = list_of(ENV_A);
    waiting.req.filter.tags = late;
    waiting.req.filter.tag_count = 1;
    assert_list(world, &waiting, "1");
    waiting.req.filter.tags = early;
    assert_list(world, &waiting, "1");
}

const struct CMUnitTest store_list_cases[] = {
    cmocka_unit_test(filters_are_anded_and_their_values_ored),
    cmocka_unit_test(runs_are_found_by_any_or_by_every_tag),
    cmocka_unit_test(pages_continue_at_a_cursor_in_both_directions),
    cmocka_unit_test(a_list_brings_packets_when_asked),
    cmocka_unit_test(a_tag_that_was_gained_is_found),
    cmocka_unit_test(a_list_ends_behind_the_run_that_fills_its_bytes),
    cmocka_unit_test(a_filter_is_counted_by_status),
};
const size_t store_list_case_count = sizeof(store_list_cases) / sizeof(store_list_cases[0]);
