/* Which runs match a query, with lists of values as long as a client may send. */
#include "tests/support/world/unit.h"

#include "core/model/query.h"

enum { VALUES = 2000 };

static struct {
    char texts[VALUES][16];
    struct slice values[VALUES];
} names;

static int write_names(void **state)
{
    (void)state;
    for (int i = 0; i < VALUES; i++) {
        snprintf(names.texts[i], sizeof(names.texts[i]), "v%d", VALUES - i);
        names.values[i] = slice_of(names.texts[i]);
    }
    return 0;
}

static bool matches(const struct run *run, const struct run_filter *wanted)
{
    struct query *query = query_create(wanted, 0);
    bool found = query_matches(query, run);
    query_unref(query);
    return found;
}

static bool version_matches(const char *version, size_t count)
{
    struct run run = { .worker_version = version ? bytes_create(slice_of(version)) : NULL };
    const struct run_filter wanted = { .is_test = -1,
                                       .versions = names.values,
                                       .version_count = count };
    bool found = matches(&run, &wanted);
    bytes_unref(run.worker_version);
    return found;
}

static void each_value_of_a_list_matches_and_no_other(void **state)
{
    (void)state;
    for (int i = 1; i <= VALUES; i++) {
        char version[16];
        snprintf(version, sizeof(version), "v%d", i);
        assert_true(version_matches(version, VALUES));
        assert_true(version_matches(version, 1) == (i == VALUES));
    }
    assert_false(version_matches("v", VALUES));
    assert_false(version_matches("v0", VALUES));
    assert_false(version_matches("v20000", VALUES));
    assert_false(version_matches(NULL, VALUES));
    assert_true(version_matches(NULL, 0));
}

static bool tags_match(const char *const *has, size_t has_count, const char *const *wants,
                       size_t wants_count, bool every)
{
    struct slice had[4], wanted[4];
    for (size_t i = 0; i < has_count; i++)
        had[i] = slice_of(has[i]);
    for (size_t i = 0; i < wants_count; i++)
        wanted[i] = slice_of(wants[i]);
    struct run run = { .tags = tag_list_create(had, has_count) };
    const struct run_filter filter = {
        .is_test = -1, .tags = wanted, .tag_count = wants_count, .every_tag = every
    };
    bool found = matches(&run, &filter);
    tag_list_unref(run.tags);
    return found;
}

static void run_needs_any_tag_or_every_tag(void **state)
{
    (void)state;
    const char *ab[] = { "a", "b" }, *ba[] = { "b", "a" }, *aa[] = { "a", "a" },
               *c[] = { "c" };
    assert_true(tags_match(ab, 2, ba, 2, true));
    assert_true(tags_match(ab, 1, ba, 2, false));
    assert_false(tags_match(ab, 1, ba, 2, true));
    assert_false(tags_match(aa, 2, ab, 2, true)); /* the same tag twice is one */
    assert_false(tags_match(ab, 2, c, 1, false));
    assert_false(tags_match(NULL, 0, c, 1, false));
    assert_true(tags_match(NULL, 0, NULL, 0, false));
    assert_true(tags_match(NULL, 0, NULL, 0, true));
}

static void equal_queries_have_one_key(void **state)
{
    (void)state;
    struct slice ab[] = { SLICE("a"), SLICE("b") },
                 bab[] = { SLICE("b"), SLICE("a"), SLICE("b") };
    struct slice joined[] = { SLICE("ab") };
    const struct run_filter filters[] = {
        { .is_test = -1, .tags = ab, .tag_count = 2 },
        { .is_test = -1, .tags = bab, .tag_count = 3 },
        { .is_test = -1, .tasks = ab, .task_count = 2 },
        { .is_test = -1, .tags = joined, .tag_count = 1 },
        { .is_test = -1, .tags = ab, .tag_count = 2, .every_tag = true },
        { .is_test = -1, .batch = SLICE("x") },
        { .is_test = -1, .schedule = SLICE("x") },
        { .is_test = -1 },
        { .is_test = -1, .created_from = 5 },
    };
    struct query *made[9], *moves = query_create(&filters[8], 60000);
    for (size_t i = 0; i < 9; i++)
        made[i] = query_create(&filters[i], 0);
    for (size_t i = 0; i < 9; i++)
        for (size_t k = 0; k < i; k++)
            assert_int_equal(slice_equal(query_key(made[i]), query_key(made[k])),
                             i == 1 && k == 0);
    struct run_filter other = filters[8];
    other.created_from = 7;
    struct query *same = query_create(&other, 60000);
    assert_true(slice_equal(query_key(moves), query_key(same)));
    assert_int_equal(made[1]->filter.tag_count, 2);
    query_unref(moves);
    query_unref(same);
    for (size_t i = 0; i < 9; i++)
        query_unref(made[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_value_of_a_list_matches_and_no_other),
        cmocka_unit_test(run_needs_any_tag_or_every_tag),
        cmocka_unit_test(equal_queries_have_one_key),
    };
    return cmocka_run_group_tests(tests, write_names, NULL);
}
