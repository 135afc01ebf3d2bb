/* One function frees the results of a read, whatever its kind. */
#include "tests/support/world/unit.h"

#include "base/mem.h"
#include "runcast/store.h"

static struct run *two_runs(void)
{
    struct run *runs = mem_new_array(struct run, 2);
    for (int i = 0; i < 2; i++)
        runs[i].payload = bytes_create(SLICE("payload"));
    return runs;
}

static void a_finished_list_or_walk_has_no_runs(void **state)
{
    (void)state;
    struct store_list list = { .read.kind = READ_LIST, .runs = two_runs(), .count = 2 };
    struct store_walk walk = { .read.kind = READ_WALK, .runs = two_runs(), .count = 2 };
    store_read_finish(&list.read);
    store_read_finish(&walk.read);
    assert_null(list.runs);
    assert_null(walk.runs);
    assert_int_equal(list.count + walk.count, 0);
}

static void a_finished_scan_has_no_documents(void **state)
{
    (void)state;
    struct store_scan scan = { .read.kind = READ_SCAN, .count = 2 };
    scan.documents = mem_new_array(struct document, 2);
    scan.documents[0].name = bytes_create(SLICE("a"));
    scan.documents[1].body = bytes_create(SLICE("b"));
    store_read_finish(&scan.read);
    assert_null(scan.documents);
    assert_int_equal(scan.count, 0);
}

static void a_finished_load_or_piece_has_no_bytes(void **state)
{
    (void)state;
    struct store_load load = { .read.kind = READ_LOAD };
    struct store_piece piece = { .read.kind = READ_PIECE };
    load.document.body = bytes_create(SLICE("body"));
    load.run.payload = bytes_create(SLICE("payload"));
    piece.piece = bytes_create(SLICE("piece"));
    store_read_finish(&load.read);
    store_read_finish(&piece.read);
    assert_null(load.document.body);
    assert_null(load.run.payload);
    assert_null(piece.piece);
}

/* An operation may end before it has read anything. */
static void finishing_a_read_that_never_began_does_nothing(void **state)
{
    (void)state;
    struct store_list list = { 0 };
    store_read_finish(&list.read);
    assert_null(list.runs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_finished_list_or_walk_has_no_runs),
        cmocka_unit_test(a_finished_scan_has_no_documents),
        cmocka_unit_test(a_finished_load_or_piece_has_no_bytes),
        cmocka_unit_test(finishing_a_read_that_never_began_does_nothing),
    };
    return cmocka_run_group_tests_name("store read", tests, NULL, NULL);
}
