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

enum { PROD = 1, PREVIEW = 2 };

/* Ten branches have more than prod, which stays within its share. */
static void preview_branches_count_as_one_environment(void **state)
{
    (void)state;
    struct trace_part parts[11] = { { .env = PROD, .group = PROD, .bytes = 600 } };
    struct trace_share_limits limits = { .environment = 2000, .project = 6000 };
    int64_t left = 600;
    for (uint32_t i = 1; i < 11; i++)
        parts[i] = (struct trace_part){ .env = 10 + i, .group = PREVIEW, .bytes = 700 };
    trace_shares_set_goals(parts, 11, &limits);
    assert_true(parts[0].goal > parts[0].bytes);
    for (int i = 1; i < 11; i++) {
        assert_in_range(parts[i].goal, 400, 699);
        left += parts[i].goal;
    }
    assert_true(left <= limits.project);
}

static void branch_with_few_logs_keeps_them_among_others(void **state)
{
    (void)state;
    struct trace_part parts[] = { { .env = PROD, .group = PROD, .bytes = 3000 },
                                  { .env = 11, .group = PREVIEW, .bytes = 100 },
                                  { .env = 12, .group = PREVIEW, .bytes = 5000 } };
    struct trace_share_limits limits = { .project = 4000 };
    trace_shares_set_goals(parts, 3, &limits);
    assert_int_equal(parts[0].goal, 1750);
    assert_true(parts[1].goal > 100);
    assert_int_equal(parts[2].goal, 1650);
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
        cmocka_unit_test(preview_branches_count_as_one_environment),
        cmocka_unit_test(branch_with_few_logs_keeps_them_among_others),
        cmocka_unit_test(environments_within_the_target_are_not_limited),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
