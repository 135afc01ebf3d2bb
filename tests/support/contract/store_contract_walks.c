/* store_contract_walks.c - what every driver must do: runs in the order of their last
 * change. */
#include <stdio.h>

#include "base/buf.h"
#include "base/mem.h"
#include "tests/support/contract/store_contract_cases.h"

static void on_walked(struct store_read *read, enum store_status status)
{
    assert_int_equal(status, STORE_OK);
    container_of(read, struct waiting_walk, req.read)->answered = true;
}

void walk_unfinished(struct store_world *world, struct waiting_walk *waiting)
{
    struct store_walk *req = &waiting->req;
    req->read = (struct store_read){ READ_WALK, ENV_A, on_walked };
    req->kind = WALK_UNFINISHED;
    req->up_to = UINT64_MAX;
    req->limit = req->limit ? req->limit : 100;
    req->runs = NULL;
    req->count = 0;
    waiting->answered = false;
    world->store->ops->read(world->store, &req->read);
    while (!waiting->answered)
        world->turn(world);
}

static void assert_walk(struct store_world *world, struct store_walk walk,
                        const char *expected, bool more)
{
    struct waiting_walk waiting = { .req = walk };
    char names[256];
    waiting.req.read = (struct store_read){ READ_WALK, ENV_A, on_walked };
    waiting.req.up_to = walk.up_to ? walk.up_to : UINT64_MAX;
    waiting.req.limit = walk.limit ? walk.limit : 100;
    world->store->ops->read(world->store, &waiting.req.read);
    while (!waiting.answered)
        world->turn(world);
    name_runs(waiting.req.runs, waiting.req.count, names);
    assert_string_equal(names, expected);
    assert_int_equal(waiting.req.more, more);
    for (size_t i = 0; i < waiting.req.count; i++)
        assert_non_null(waiting.req.runs[i].payload);
    drop_runs(waiting.req.runs, waiting.req.count);
}

/* The second run changes again, so it is the last; its rev is 10. */
static void fill_and_change_the_second(struct store_world *world)
{
    char id[ID_MAX];
    fill_runs(world);
    struct change change = { .kind = CHANGE_RUN, .env = ENV_A, .expected = 1 };
    make_run_id(2, id);
    assert_int_equal(load_run(world, ENV_A, id, &change.run), STORE_OK);
    assert_int_equal(commit_one(world, change), STORE_OK);
}

static void a_walk_follows_the_order_of_changes(void **state)
{
    struct store_world *world = *state;
    struct bytes *even = text_bytes("even"), *batch = text_bytes("batch_1");
    struct change sample = new_run(ENV_A, 1, "a");
    size_t two_runs = 2 * run_packet_bytes(&sample.run);
    const struct {
        struct store_walk walk;
        const char *expected;
        bool more;
    } cases[] = {
        { { .kind = WALK_ALL }, "1 3 4 5 6 7 8 9 2", false },
        { { .kind = WALK_ALL, .newest_first = true }, "2 9 8 7 6 5 4 3 1", false },
        { { .kind = WALK_ALL, .after = 4, .up_to = 7 }, "5 6 7", false },
        { { .kind = WALK_ALL, .limit = 3 }, "1 3 4", true },
        { { .kind = WALK_ALL, .after = 7, .limit = 3 }, "8 9 2", false },
        { { .kind = WALK_ALL, .up_to = 9, .limit = 2, .newest_first = true }, "9 8", true },
        { { .kind = WALK_ALL, .after = 10 }, "", false },
        { { .kind = WALK_ALL, .created_from = FIRST_RUN_MS + 7 }, "7 8 9", false },
        { { .kind = WALK_TAG, .name = even }, "4 6 8 2", false },
        { { .kind = WALK_TAG, .name = even, .limit = 2 }, "4 6", true },
        { { .kind = WALK_TAG, .name = even, .after = 6, .newest_first = true },
          "2 8",
          false },
        { { .kind = WALK_TAG, .name = batch }, "", false },
        { { .kind = WALK_BATCH, .name = batch }, "8 9", false },
        { { .kind = WALK_BATCH, .name = batch, .limit = 1 }, "8", true },
        { { .kind = WALK_UNFINISHED }, "4 6 8 2", false },
        { { .kind = WALK_UNFINISHED, .up_to = 8, .newest_first = true }, "8 6 4", false },
        { { .kind = WALK_SETTLED, .newest_first = true, .limit = 2 }, "9 7", true },
        { { .kind = WALK_ALL, .byte_limit = two_runs }, "1 3 4", true }, /* one too many */
        { { .kind = WALK_ALL, .byte_limit = 1 }, "1", true },
        { { .kind = WALK_BATCH, .name = batch, .byte_limit = 1000 }, "8 9", false },
    };
    change_finish(&sample);
    fill_and_change_the_second(world);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_walk(world, cases[i].walk, cases[i].expected, cases[i].more);
    bytes_unref(even);
    bytes_unref(batch);
}

/* Everything that a start gets after a rev, page by page, while others read as well. */
static void assert_start(struct store_world *world, struct store_walk walk,
                         const char *expected)
{
    struct waiting_walk waiting = { .req = walk };
    struct buf names = { 0 };
    do {
        char page[256], id[ID_MAX];
        struct run run;
        walk_unfinished(world, &waiting);
        name_runs(waiting.req.runs, waiting.req.count, page);
        buf_print(&names, "%s%s", names.len && *page ? " " : "", page);
        assert_true(waiting.req.count <= waiting.req.limit);
        if (waiting.req.count)
            waiting.req.after = waiting.req.runs[waiting.req.count - 1].rev;
        drop_runs(waiting.req.runs, waiting.req.count);
        make_run_id(3, id);
        assert_int_equal(load_run(world, ENV_A, id, &run), STORE_OK);
        run_finish(&run);
    } while (waiting.req.more);
    buf_add_char(&names, '\0');
    assert_string_equal(names.ptr, expected);
    buf_finish(&names);
}

static void a_start_walks_page_by_page(void **state)
{
    struct store_world *world = *state;
    struct waiting_walk left = { .req = { .takes_its_time = true, .limit = 1 } };
    fill_and_change_the_second(world);
    for (unsigned limit = 1; limit <= 5; limit++)
        assert_start(world, (struct store_walk){ .takes_its_time = true, .limit = limit },
                     "4 6 8 2");
    assert_start(world, (struct store_walk){ .takes_its_time = true, .byte_limit = 1 },
                 "4 6 8 2");
    walk_unfinished(world, &left); /* the rest is never requested */
    drop_runs(left.req.runs, left.req.count);
    assert_start(world, (struct store_walk){ .takes_its_time = true, .after = 5 }, "6 8 2");
    assert_start(world, (struct store_walk){ .takes_its_time = true, .after = 10 }, "");
}

static void a_cancel_that_waits_for_its_worker_is_unfinished(void **state)
{
    struct store_world *world = *state;
    for (int n = 1; n <= 2; n++) {
        struct change change = new_run(ENV_A, n, "a");
        change.run.status = RUN_CANCELED;
        change.run.execution = n == 1 ? EXECUTION_PENDING_CANCEL : EXECUTION_FINISHED;
        assert_int_equal(commit_one(world, change), STORE_OK);
    }
    assert_walk(world, (struct store_walk){ .kind = WALK_UNFINISHED }, "1", false);
    assert_walk(world, (struct store_walk){ .kind = WALK_SETTLED }, "2", false);
}

const struct CMUnitTest store_walk_cases[] = {
    cmocka_unit_test(a_walk_follows_the_order_of_changes),
    cmocka_unit_test(a_start_walks_page_by_page),
    cmocka_unit_test(a_cancel_that_waits_for_its_worker_is_unfinished),
};
const size_t store_walk_case_count = sizeof(store_walk_cases) / sizeof(store_walk_cases[0]);
