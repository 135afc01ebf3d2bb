/* Long bytes count against the memory quota once, as long as any holder keeps them. */
#include "net/share.h"
#include "tests/support/world/unit.h"

enum { LENGTH = 1000 };

static struct bytes *make(char letter)
{
    struct bytes *bytes = bytes_create_empty(LENGTH);
    memset(bytes->data, letter, LENGTH);
    return bytes;
}

static void shared_bytes_count_once_until_the_last_holder_gives_them_back(void **state)
{
    (void)state;
    struct quota quota = { .limit = SIZE_MAX };
    struct bytes *bytes = make('a');
    for (int i = 0; i < 3; i++) {
        share_take(&quota, bytes);
        assert_int_equal(quota.used, LENGTH);
    }
    for (int i = 0; i < 2; i++) {
        share_give(&quota, bytes);
        assert_int_equal(quota.used, LENGTH);
    }
    share_give(&quota, bytes);
    assert_int_equal(quota.used, 0);
    bytes_unref(bytes);
}

static void returned_bytes_may_be_taken_again(void **state)
{
    (void)state;
    struct quota quota = { .limit = SIZE_MAX };
    struct bytes *bytes = make('a');
    for (int i = 0; i < 2; i++) {
        share_take(&quota, bytes);
        assert_int_equal(quota.used, LENGTH);
        share_give(&quota, bytes);
        assert_int_equal(quota.used, 0);
    }
    bytes_unref(bytes);
}

/* Bytes are identified by their address, not by their content. */
static void equal_bytes_at_two_addresses_count_twice(void **state)
{
    (void)state;
    struct quota quota = { .limit = SIZE_MAX };
    struct bytes *one = make('a'), *other = make('a');
    share_take(&quota, one);
    share_take(&quota, other);
    assert_int_equal(quota.used, 2 * LENGTH);
    share_give(&quota, one);
    assert_int_equal(quota.used, LENGTH);
    share_give(&quota, other);
    assert_int_equal(quota.used, 0);
    bytes_unref(one);
    bytes_unref(other);
}

static void quota_counts_for_itself_and_its_outer_quotas(void **state)
{
    (void)state;
    struct quota outer = { .limit = SIZE_MAX };
    struct quota one = { .limit = SIZE_MAX, .outer = &outer };
    struct quota other = { .limit = SIZE_MAX, .outer = &outer };
    struct bytes *bytes = make('a');
    share_take(&one, bytes);
    share_take(&one, bytes);
    share_take(&other, bytes);
    assert_int_equal(one.used, LENGTH);
    assert_int_equal(other.used, LENGTH);
    assert_int_equal(outer.used, 2 * LENGTH);
    share_give(&other, bytes);
    assert_int_equal(one.used, LENGTH);
    assert_int_equal(other.used, 0);
    share_give(&one, bytes);
    share_give(&one, bytes);
    assert_int_equal(outer.used, 0);
    bytes_unref(bytes);
}

static void taking_bytes_adds_a_reference(void **state)
{
    (void)state;
    struct quota quota = { .limit = SIZE_MAX };
    struct bytes *bytes = make('a');
    share_take(&quota, bytes);
    share_take(&quota, bytes);
    assert_int_equal(bytes->refs, 3);
    bytes_unref(bytes);
    share_give(&quota, bytes);
    assert_int_equal(bytes->refs, 1);
    assert_memory_equal(bytes->data, "aaaa", 4);
    share_give(&quota, bytes);
}

/* A quota only counts: callers check the limit before they take. */
static void full_quota_still_counts(void **state)
{
    (void)state;
    struct quota quota = { .limit = 1 };
    struct bytes *bytes = make('a');
    share_take(&quota, bytes);
    assert_int_equal(quota.used, LENGTH);
    assert_false(quota_has(&quota, 0));
    share_give(&quota, bytes);
    bytes_unref(bytes);
}

static void taking_with_null_quota_or_bytes_does_nothing(void **state)
{
    (void)state;
    struct quota quota = { .limit = SIZE_MAX };
    struct bytes *bytes = make('a');
    share_take(NULL, bytes);
    share_take(&quota, NULL);
    share_take(NULL, NULL);
    assert_int_equal(bytes->refs, 1);
    assert_int_equal(quota.used, 0);
    share_give(NULL, bytes);
    share_give(&quota, NULL);
    share_give(NULL, NULL);
    assert_int_equal(bytes->refs, 1);
    bytes_unref(bytes);
}

/* Bytes held by one quota are not found under another, however many there are. */
static void a_thousand_shared_bytes_are_counted_per_quota(void **state)
{
    (void)state;
    struct quota quotas[2] = { { .limit = SIZE_MAX }, { .limit = SIZE_MAX } };
    struct bytes *all[1000];
    for (int i = 0; i < 1000; i++) {
        all[i] = make('a');
        share_take(&quotas[i % 2], all[i]);
        if (i % 3 == 0)
            share_take(&quotas[i % 2], all[i]);
    }
    for (int i = 0; i < 2; i++)
        assert_int_equal(quotas[i].used, 500 * LENGTH);
    for (int i = 0; i < 1000; i++)
        share_give(&quotas[i % 2], all[i]);
    assert_int_equal(quotas[0].used + quotas[1].used, 334 * LENGTH);
    for (int i = 0; i < 1000; i++) {
        if (i % 3 == 0)
            share_give(&quotas[i % 2], all[i]);
        bytes_unref(all[i]);
    }
    assert_int_equal(quotas[0].used + quotas[1].used, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shared_bytes_count_once_until_the_last_holder_gives_them_back),
        cmocka_unit_test(returned_bytes_may_be_taken_again),
        cmocka_unit_test(equal_bytes_at_two_addresses_count_twice),
        cmocka_unit_test(quota_counts_for_itself_and_its_outer_quotas),
        cmocka_unit_test(taking_bytes_adds_a_reference),
        cmocka_unit_test(full_quota_still_counts),
        cmocka_unit_test(taking_with_null_quota_or_bytes_does_nothing),
        cmocka_unit_test(a_thousand_shared_bytes_are_counted_per_quota),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
