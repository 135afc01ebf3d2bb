/* Names of preview branches: which are valid, and the branch of a git ref or a header. */
#include "tests/support/world/unit.h"

#include "accounts/accounts.h"
#include "accounts/branch.h"

static void names_that_git_allows_are_valid(void **state)
{
    static const char *const right[] = { "main", "feature/x",  "a-b_c.d",  "@",
                                         "a@b",  "fix/#12",    "a.lock.b", "ümläut",
                                         "{x}",  "refs/heads", ".a",       "a/./b" };
    (void)state;
    for (size_t i = 0; i < sizeof(right) / sizeof(right[0]); i++)
        if (!branch_name_is_right(slice_of(right[i])))
            fail_msg("%s", right[i]);
}

static void other_branch_names_are_invalid(void **state)
{
    static const char *const wrong[] = { "",      " ",     "a b",   "a..b",   "/a",
                                         "a/",    "a//b",  "a~b",   "a^b",    "a:b",
                                         "a?b",   "a*b",   "a[b",   "a\\b",   "a@{b",
                                         "a\tb",  "a\nb",  "\x7f",  "a.lock", "\xff",
                                         "a\xc3", ".lock", "a b/c", "@{",     ".." };
    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        if (branch_name_is_right(slice_of(wrong[i])))
            fail_msg("%s", wrong[i]);
    assert_false(branch_name_is_right((struct slice){ "a\0b", 3 }));
    assert_false(branch_name_is_right((struct slice){ 0 }));
}

static void a_name_has_at_most_255_bytes(void **state)
{
    char name[BRANCH_NAME_MAX + 1];
    (void)state;
    memset(name, 'x', sizeof(name));
    assert_true(branch_name_is_right((struct slice){ name, BRANCH_NAME_MAX }));
    assert_false(branch_name_is_right((struct slice){ name, BRANCH_NAME_MAX + 1 }));
}

static void a_ref_is_cut_to_its_branch(void **state)
{
    static const struct {
        const char *ref, *branch;
    } cases[] = {
        { "main", "main" },
        { "refs/heads/feature/x", "feature/x" },
        { "refs/remotes/o/a", "o/a" },
        { "refs/tags/v1", "v1" },
        { "refs/pull/12/merge", "12/merge" },
        { "refs/merge/1", "1" },
        { "refs/release/1.0", "1.0" },
        { "refs/notes/x", "" },
        { "refs/", "" },
        { "refs/heads/", "" },
        { "refs", "refs" },
        { "refs/heads/refs/heads/a", "refs/heads/a" },
        { "", "" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        if (!slice_is(branch_name_clean(slice_of(cases[i].ref)), cases[i].branch))
            fail_msg("%s", cases[i].ref);
    assert_int_equal(branch_name_clean((struct slice){ 0 }).len, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_that_git_allows_are_valid),
        cmocka_unit_test(other_branch_names_are_invalid),
        cmocka_unit_test(a_name_has_at_most_255_bytes),
        cmocka_unit_test(a_ref_is_cut_to_its_branch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
