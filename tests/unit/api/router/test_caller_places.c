/* Calls in progress at the leader: no caller takes what others need. */
#include "tests/support/world/unit.h"

#include "api/router/caller_places.h"

enum { CALLERS = 40 };

static struct caller_places places;
static struct place_owner *taken[CALLER_PLACES];
static size_t count;

static int open_scene(void **state)
{
    (void)state;
    caller_places_init(&places);
    count = 0;
    return 0;
}

static int close_scene(void **state)
{
    (void)state;
    while (count)
        caller_places_release(&places, taken[--count]);
    assert_int_equal(places.strangers, 0);
    caller_places_finish(&places);
    return 0;
}

static bool keep(struct place_owner *owner)
{
    if (owner)
        taken[count++] = owner;
    return owner;
}

static size_t take_all(const char *id, size_t limit)
{
    size_t got = 0;
    while (keep(caller_places_take(&places, slice_of(id), limit)))
        got++;
    return got;
}

static size_t take_all_of_stranger(const char *address)
{
    size_t got = 0;
    while (keep(caller_places_take_stranger(&places, slice_of(address))))
        got++;
    return got;
}

static void one_caller_has_its_limit(void **state)
{
    (void)state;
    assert_int_equal(take_all("proj_a", CALLER_PLACES_OF_PROJECT),
                     CALLER_PLACES_OF_PROJECT);
    assert_int_equal(take_all("user_a", CALLER_PLACES_OF_USER), CALLER_PLACES_OF_USER);
    caller_places_release(&places, taken[0]);
    taken[0] = caller_places_take(&places, SLICE("proj_a"), CALLER_PLACES_OF_PROJECT);
    assert_non_null(taken[0]);
}

static void each_of_many_callers_that_take_all_leaves_some(void **state)
{
    char id[16];
    (void)state;
    for (size_t i = 0; i < CALLERS; i++) {
        size_t free = CALLER_PLACES - places.taken;
        snprintf(id, sizeof(id), "proj_%zu", i);
        size_t got = take_all(id, CALLER_PLACES_OF_PROJECT);
        assert_true(got == CALLER_PLACES_OF_PROJECT || got >= free / 2);
        if (i == 3) /* four tenants do not have them all */
            assert_true(places.taken <= CALLER_PLACES - CALLER_PLACES_OF_USER);
        if (i < 6)
            assert_true(got >= 50);
    }
}

static void callers_that_take_by_turns_have_equal_shares(void **state)
{
    size_t got[4] = { 0 };
    char id[2] = "a";
    (void)state;
    for (bool any = true; any;) {
        any = false;
        for (size_t i = 0; i < 4; i++) {
            id[0] = (char)('a' + i);
            bool takes =
                keep(caller_places_take(&places, slice_of(id), CALLER_PLACES_OF_PROJECT));
            got[i] += takes;
            any |= takes;
        }
    }
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(got[i], CALLER_PLACES / 5);
    assert_int_equal(CALLER_PLACES - places.taken, CALLER_PLACES / 5);
}

static void strangers_are_counted_by_address_and_together(void **state)
{
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        char address[2] = { (char)('a' + i), 0 };
        assert_int_equal(take_all_of_stranger(address), CALLER_PLACES_OF_ADDRESS);
    }
    assert_int_equal(take_all_of_stranger("e"), 0);
    assert_int_equal(take_all("user_a", CALLER_PLACES_OF_USER), CALLER_PLACES_OF_USER);
}

static void strangers_of_a_hidden_address_have_the_limit_of_all(void **state)
{
    (void)state;
    assert_int_equal(take_all_of_stranger(""), CALLER_PLACES_OF_STRANGERS);
}

static void strangers_leave_places_for_others(void **state)
{
    char id[16];
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        snprintf(id, sizeof(id), "proj_%zu", i);
        take_all(id, CALLER_PLACES_OF_PROJECT);
    }
    size_t free = CALLER_PLACES - places.taken;
    size_t got = take_all_of_stranger("");
    assert_true(got && got <= free / 2);
    assert_true(take_all("proj_b", CALLER_PLACES_OF_PROJECT) >= free / 4);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_scene, close_scene)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(one_caller_has_its_limit),
        TEST(each_of_many_callers_that_take_all_leaves_some),
        TEST(callers_that_take_by_turns_have_equal_shares),
        TEST(strangers_are_counted_by_address_and_together),
        TEST(strangers_of_a_hidden_address_have_the_limit_of_all),
        TEST(strangers_leave_places_for_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
