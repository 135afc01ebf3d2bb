/* Which read is next: owners take turns, and searches leave a connection for lookups. A
 * lookup finds a row by its name. */
#include "tests/support/world/unit.h"

#include "store/read_line.h"

enum { WAITERS = 300, ATTACKER = 1, VICTIM = 2, OTHER = 3 };

static struct {
    struct read_line waiting;
    struct read_waiter all[WAITERS];
    size_t count;
} scene;

static int set_up(void **state)
{
    (void)state;
    memset(&scene, 0, sizeof(scene));
    read_line_init(&scene.waiting);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    while (read_line_take(&scene.waiting, true))
        ;
    read_line_finish(&scene.waiting);
    return 0;
}

static struct read_waiter *add_of(uint64_t owner, uint64_t env, bool slow)
{
    struct read_waiter *waiter = &scene.all[scene.count++];
    *waiter = (struct read_waiter){ .owner = owner, .env = env, .slow = slow };
    list_init(&waiter->link);
    read_line_add(&scene.waiting, waiter);
    return waiter;
}

static struct read_waiter *add(uint64_t owner, bool slow)
{
    return add_of(owner, owner, slow);
}

static void add_many(uint64_t owner, bool slow)
{
    for (int i = 0; i < 100; i++)
        add(owner, slow);
}

static void reads_of_one_owner_are_taken_in_order(void **state)
{
    (void)state;
    struct read_waiter *first = add(VICTIM, false), *second = add(VICTIM, false);
    assert_ptr_equal(read_line_take(&scene.waiting, true), first);
    assert_ptr_equal(read_line_take(&scene.waiting, true), second);
    assert_null(read_line_take(&scene.waiting, true));
}

static void read_waits_for_one_read_of_each_other_owner(void **state)
{
    (void)state;
    for (int slow = 0; slow < 2; slow++) {
        add_many(ATTACKER, slow);
        struct read_waiter *other = add(OTHER, slow), *victim = add(VICTIM, slow);
        assert_int_equal(read_line_take(&scene.waiting, true)->owner, ATTACKER);
        assert_ptr_equal(read_line_take(&scene.waiting, true), other);
        assert_ptr_equal(read_line_take(&scene.waiting, true), victim);
        assert_int_equal(read_line_take(&scene.waiting, true)->owner, ATTACKER);
        tear_down(state);
        set_up(state);
    }
}

/* However many branches a project creates, its environments share one turn. */
static void environments_share_the_turn_of_their_owner(void **state)
{
    (void)state;
    add_many(ATTACKER, true);
    for (uint64_t branch = 10; branch < 60; branch++)
        add_of(ATTACKER, branch, true);
    struct read_waiter *victim = add(VICTIM, true);
    assert_int_equal(read_line_take(&scene.waiting, true)->env, ATTACKER);
    assert_ptr_equal(read_line_take(&scene.waiting, true), victim);
    assert_int_equal(read_line_take(&scene.waiting, true)->env, 10);
    assert_int_equal(read_line_take(&scene.waiting, true)->env, 11);
}

static void slow_reads_wait_while_they_may_not_begin(void **state)
{
    (void)state;
    add_many(ATTACKER, true);
    assert_null(read_line_take(&scene.waiting, false));
    struct read_waiter *quick = add(VICTIM, false);
    assert_ptr_equal(read_line_take(&scene.waiting, false), quick);
    assert_null(read_line_take(&scene.waiting, false));
    assert_true(read_line_take(&scene.waiting, true)->slow);
}

static void slow_and_quick_reads_take_turns(void **state)
{
    (void)state;
    add_many(ATTACKER, false);
    add_many(VICTIM, true);
    int slow = 0;
    for (int i = 0; i < 10; i++)
        slow += read_line_take(&scene.waiting, true)->slow;
    assert_int_equal(slow, 5);
}

/* ---- reads for memory ---- */

static struct read_waiter *add_for_memory(void)
{
    struct read_waiter *waiter = &scene.all[scene.count++];
    *waiter = (struct read_waiter){ .for_memory = true };
    list_init(&waiter->link);
    read_line_add(&scene.waiting, waiter);
    return waiter;
}

static void every_second_read_is_one_for_memory(void **state)
{
    (void)state;
    add_many(ATTACKER, false);
    add_many(VICTIM, true);
    struct read_waiter *first = add_for_memory(), *second = add_for_memory();
    assert_ptr_equal(read_line_take(&scene.waiting, true), first);
    assert_false(read_line_take(&scene.waiting, true)->for_memory);
    assert_ptr_equal(read_line_take(&scene.waiting, true), second);
    int slow = 0;
    for (int i = 0; i < 9; i++)
        slow += read_line_take(&scene.waiting, true)->slow;
    assert_in_range(slow, 4, 5);
}

static void reads_for_memory_do_not_wait_for_slow_ones(void **state)
{
    (void)state;
    add_many(ATTACKER, true);
    struct read_waiter *first = add_for_memory(), *second = add_for_memory();
    assert_ptr_equal(read_line_take(&scene.waiting, false), first);
    assert_ptr_equal(read_line_take(&scene.waiting, false), second);
    assert_null(read_line_take(&scene.waiting, false));
    assert_false(read_line_is_empty(&scene.waiting));
}

/* ---- the kind of a read ---- */

static struct read_waiter waiter_of(const struct store_read *read)
{
    static const struct store store;
    struct read_waiter waiter;
    read_waiter_init(&waiter, &store, read);
    return waiter;
}

static void reads_that_search_are_slow(void **state)
{
    (void)state;
    struct store_load load = { .read = { READ_LOAD, 1, NULL } };
    struct store_piece piece = { .read = { READ_PIECE, 1, NULL } };
    struct store_scan scan = { .read = { READ_SCAN, 1, NULL } };
    struct store_walk walk = { .read = { READ_WALK, 1, NULL } };
    struct store_count count = { .read = { READ_COUNT, 1, NULL },
                                 .filter = { .is_test = -1, .packet = SLICE("p") } };
    struct store_list list = { .read = { READ_LIST, 1, NULL },
                               .filter = { .is_test = -1 } };
    assert_false(waiter_of(&load.read).slow);
    assert_false(waiter_of(&piece.read).slow);
    assert_false(waiter_of(&scan.read).slow);
    assert_true(waiter_of(&walk.read).slow);
    assert_true(waiter_of(&count.read).slow);
    assert_true(waiter_of(&list.read).slow);
    list.filter.parent = SLICE("run_1");
    assert_false(waiter_of(&list.read).slow);
    list.filter.statuses = 1;
    assert_true(waiter_of(&list.read).slow);
    list.filter.packet = SLICE("p");
    assert_false(waiter_of(&list.read).slow);
}

/* Otherwise a read for memory would wait for all reads of the same environment. */
static void reads_for_memory_are_of_no_project(void **state)
{
    (void)state;
    struct store_load load = { .read = { READ_LOAD, 7, NULL }, .is_for_memory = true };
    struct store_walk walk = { .read = { READ_WALK, 7, NULL }, .is_for_memory = true };
    struct read_waiter waiters[] = { waiter_of(&load.read), waiter_of(&walk.read) };
    for (int i = 0; i < 2; i++) {
        assert_true(waiters[i].for_memory);
        assert_false(waiters[i].slow);
        assert_int_equal(waiters[i].owner, 0);
        assert_int_equal(waiters[i].env, 0);
    }
}

static void reads_of_a_start_have_no_time_limit(void **state)
{
    (void)state;
    struct store_load load = { .read = { READ_LOAD, 1, NULL } };
    struct store_walk walk = { .read = { READ_WALK, 1, NULL } };
    struct store_scan scan = { .read = { READ_SCAN, 1, NULL }, .limit = 1 };
    assert_true(waiter_of(&load.read).bounded);
    assert_true(waiter_of(&walk.read).bounded);
    assert_true(waiter_of(&scan.read).bounded);
    walk.takes_its_time = true;
    scan.limit = 0;
    assert_false(waiter_of(&walk.read).bounded);
    assert_false(waiter_of(&scan.read).bounded);
}

static uint64_t share_of(void *owner, uint32_t env)
{
    return *(uint64_t *)owner + env;
}

static void store_names_the_owner_of_the_environment(void **state)
{
    (void)state;
    uint64_t owner = 70;
    struct store_load load = { .read = { READ_LOAD, 7, NULL } };
    struct store store = { .share_of = share_of, .stored_owner = &owner };
    struct read_waiter waiter = waiter_of(&load.read);
    assert_int_equal(waiter.owner, 7);
    assert_int_equal(waiter.env, 7);
    read_waiter_init(&waiter, &store, &load.read);
    assert_int_equal(waiter.owner, 77);
    assert_int_equal(waiter.env, 7);
}

static void slow_reads_leave_one_connection_free(void **state)
{
    (void)state;
    assert_true(read_line_slow_may(0, 1));
    assert_false(read_line_slow_may(1, 1));
    assert_true(read_line_slow_may(0, 2));
    assert_false(read_line_slow_may(1, 2));
    assert_true(read_line_slow_may(1, 3));
    assert_false(read_line_slow_may(2, 3));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(reads_of_one_owner_are_taken_in_order),
        TEST(read_waits_for_one_read_of_each_other_owner),
        TEST(environments_share_the_turn_of_their_owner),
        TEST(slow_reads_wait_while_they_may_not_begin),
        TEST(slow_and_quick_reads_take_turns),
        TEST(every_second_read_is_one_for_memory),
        TEST(reads_for_memory_do_not_wait_for_slow_ones),
        TEST(reads_for_memory_are_of_no_project),
        TEST(reads_that_search_are_slow),
        TEST(reads_of_a_start_have_no_time_limit),
        TEST(store_names_the_owner_of_the_environment),
        TEST(slow_reads_leave_one_connection_free),
    };
    return cmocka_run_group_tests_name("read line", tests, NULL, NULL);
}
