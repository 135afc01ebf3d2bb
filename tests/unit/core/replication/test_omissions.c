/* The numbers of omitted changes are joined, and precede the frames that depend on them. */
#include "tests/support/world/unit.h"

#include "core/replication/omissions.h"

enum { ENV = 5, OTHER = 7 };

static struct omissions omissions;

static bool add(uint32_t env, uint64_t seq)
{
    return omissions_add(&omissions, &(struct repl_passed){ env, seq, seq });
}

static bool precede(const struct repl_frame *frame)
{
    return omissions_precede(&omissions, frame);
}

static int begin(void **state)
{
    (void)state;
    omissions = (struct omissions){ 0 };
    return 0;
}

static void changes_in_a_row_are_one_range(void **state)
{
    (void)state;
    for (uint64_t seq = 1; seq <= 1000; seq++) {
        assert_true(add(ENV, seq));
        assert_true(add(OTHER, 500 + seq));
    }
    assert_int_equal(omissions.count, 2);
    assert_int_equal(omissions.list[0].env, ENV);
    assert_int_equal(omissions.list[0].from, 1);
    assert_int_equal(omissions.list[0].to, 1000);
    assert_int_equal(omissions.list[1].from, 501);
    assert_int_equal(omissions.list[1].to, 1500);
}

static void gap_is_never_joined(void **state)
{
    (void)state;
    assert_true(add(ENV, 1));
    assert_false(add(ENV, 3));
    assert_int_equal(omissions.list[0].to, 1);
}

static void list_may_be_full(void **state)
{
    (void)state;
    for (uint32_t env = 1; env <= OMISSIONS_MAX; env++)
        assert_true(add(env, 1));
    assert_true(add(OMISSIONS_MAX, 2));
    assert_false(add(OMISSIONS_MAX + 1, 1));
}

static void list_precedes_frames_of_its_environments_and_of_all(void **state)
{
    struct repl_frame before = { .kind = REPL_BEFORE, .run.env = ENV };
    struct repl_frame change = { .kind = REPL_CHANGE, .run.env = ENV };
    struct repl_frame other = { .kind = REPL_CHANGE, .run.env = OTHER };
    struct repl_frame document = { .kind = REPL_DOCUMENT };
    struct repl_frame sum = { .kind = REPL_SUM, .sum.env = OTHER };
    (void)state;
    assert_false(precede(&change));
    assert_false(precede(&document));
    assert_true(add(ENV, 1));
    assert_true(precede(&before));
    assert_true(precede(&change));
    assert_false(precede(&other));
    assert_true(precede(&document));
    assert_true(precede(&sum));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, begin)
    const struct CMUnitTest tests[] = {
        TEST(changes_in_a_row_are_one_range),
        TEST(gap_is_never_joined),
        TEST(list_may_be_full),
        TEST(list_precedes_frames_of_its_environments_and_of_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
