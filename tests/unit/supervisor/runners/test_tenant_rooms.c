/* Memory of an organization's runs: one organization cannot use up the machine's limit. */
#include "supervisor/runners/tenant_rooms.h"
#include "tests/support/world/unit.h"

static void organization_leaves_memory_for_others(void **state)
{
    (void)state;
    struct tenant_rooms rooms;
    tenant_rooms_init(&rooms, 400);
    struct room *greedy = tenant_rooms_of(&rooms, SLICE("org_a"));
    struct room *other = tenant_rooms_of(&rooms, SLICE("org_b"));
    assert_ptr_equal(greedy, tenant_rooms_of(&rooms, SLICE("org_a")));
    assert_ptr_not_equal(greedy, other);
    assert_true(room_has(greedy, 100));
    assert_false(room_has(greedy, 101));
    room_take(greedy, 100);
    assert_false(room_has(greedy, 1));
    assert_true(room_has(other, 100));
    assert_int_equal(rooms.all.used, 100);
    room_give(greedy, 100);
    tenant_rooms_finish(&rooms);
}

static void all_organizations_share_a_limit(void **state)
{
    (void)state;
    static const char *const names[] = { "org_a", "org_b", "org_c", "org_d" };
    struct tenant_rooms rooms;
    tenant_rooms_init(&rooms, 400);
    for (size_t i = 0; i < 4; i++)
        room_take(tenant_rooms_of(&rooms, slice_of(names[i])), 100);
    assert_false(room_has(tenant_rooms_of(&rooms, SLICE("org_e")), 1));
    tenant_rooms_finish(&rooms);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(organization_leaves_memory_for_others),
        cmocka_unit_test(all_organizations_share_a_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
