/* How much each environment of a project may keep when all of them exceed their shares. */
#include "api/telemetry/trace_shares.h"

#include "tests/support/world/unit.h"

enum { BRANCHES = 200 };

static void environments_below_their_share_keep_everything(void **state)
{
    (void)state;
    int64_t have[] = { 900, 100, 50, 700 };
    assert_int_equal(trace_shares_level(have, 4, 1000), 425);
    int64_t equal[] = { 500, 500 };
    assert_int_equal(trace_shares_level(equal, 2, 600), 300);
    int64_t one[] = { 10 };
    assert_int_equal(trace_shares_level(one, 1, 0), 0);
}

static void two_hundred_branches_share_one_share(void **state)
{
    (void)state;
    int64_t have[BRANCHES], sum = 0;
    for (int i = 0; i < BRANCHES; i++)
        have[i] = 1000 + i;
    int64_t level = trace_shares_level(have, BRANCHES, 100000);
    for (int i = 0; i < BRANCHES; i++)
        sum += have[i] < level ? have[i] : level;
    assert_int_equal(level, 500);
    assert_true(sum <= 100000);
}

static void environments_within_the_target_are_not_limited(void **state)
{
    (void)state;
    int64_t have[] = { 3, 2, 1 };
    assert_int_equal(trace_shares_level(have, 3, 100), INT64_MAX);
    assert_int_equal(trace_shares_level(have, 0, 100), INT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(environments_below_their_share_keep_everything),
        cmocka_unit_test(two_hundred_branches_share_one_share),
        cmocka_unit_test(environments_within_the_target_are_not_limited),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
