/* Memory of an organization's runs: one organization cannot use up the machine's limit. */
#include "supervisor/runners/tenant_quotas.h"
#include "tests/support/world/unit.h"

static void organization_leaves_memory_for_others(void **state)
{
    (void)state;
    struct tenant_quotas quotas;
    tenant_quotas_init(&quotas, 400);
    struct quota *greedy = tenant_quotas_of(&quotas, SLICE("org_a"));
    struct quota *other = tenant_quotas_of(&quotas, SLICE("org_b"));
    assert_ptr_equal(greedy, tenant_quotas_of(&quotas, SLICE("org_a")));
    assert_ptr_not_equal(greedy, other);
    assert_true(quota_has(greedy, 100));
    assert_false(quota_has(greedy, 101));
    quota_take(greedy, 100);
    assert_false(quota_has(greedy, 1));
    assert_true(quota_has(other, 100));
    assert_int_equal(quotas.all.used, 100);
    quota_release(greedy, 100);
    tenant_quotas_finish(&quotas);
}

static void all_organizations_share_a_limit(void **state)
{
    (void)state;
    static const char *const names[] = { "org_a", "org_b", "org_c", "org_d" };
    struct tenant_quotas quotas;
    tenant_quotas_init(&quotas, 400);
    for (size_t i = 0; i < 4; i++)
        quota_take(tenant_quotas_of(&quotas, slice_of(names[i])), 100);
    assert_false(quota_has(tenant_quotas_of(&quotas, SLICE("org_e")), 1));
    tenant_quotas_finish(&quotas);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(organization_leaves_memory_for_others),
        cmocka_unit_test(all_organizations_share_a_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
