/* Which read is next: owners take turns, and what is searched for leaves a connection to what
 * is found by its name. */
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

static void those_of_one_owner_are_taken_in_their_order(void **state)
{
    (void)state;
    struct read_waiter *first = add(VICTIM, false), *second = add(VICTIM, false);
    assert_ptr_equal(read_line_take(&scene.waiting, true), first);
    assert_ptr_equal(read_line_take(&scene.waiting, true), second);
    assert_null(read_line_take(&scene.waiting, true));
}

static void a_read_waits_for_one_of_each_other_owner(void **state)
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

/* However many branches a project makes, it has one turn; its environments share it. */
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

static void slow_ones_wait_while_they_may_not_be_begun(void **state)
{
    (void)state;
    add_many(ATTACKER, true);
    assert_null(read_line_take(&scene.waiting, false));
    struct read_waiter *quick = add(VICTIM, false);
    assert_ptr_equal(read_line_take(&scene.waiting, false), quick);
    assert_null(read_line_take(&scene.waiting, false));
    assert_true(read_line_take(&scene.waiting, true)->slow);
}

static void both_kinds_take_turns(void **state)
{
    (void)state;
    add_many(ATTACKER, false);
    add_many(VICTIM, true);
    int slow = 0;
    for (int i = 0; i < 10; i++)
        slow += read_line_take(&scene.waiting, true)->slow;
    assert_int_equal(slow, 5);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(those_of_one_owner_are_taken_in_their_order),
        TEST(a_read_waits_for_one_of_each_other_owner),
        TEST(environments_share_the_turn_of_their_owner),
        TEST(slow_ones_wait_while_they_may_not_be_begun),
        TEST(both_kinds_take_turns),
    };
    return cmocka_run_group_tests_name("sqlite waiting", tests, NULL, NULL);
}
