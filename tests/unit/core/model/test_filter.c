/* Which runs match a subscription's filter. */
#include "tests/support/world/unit.h"

#include "core/model/filter.h"

/* Splits a list at commas; "" for none. */
static size_t split(const char *list, struct slice names[8])
{
    struct slice rest = slice_of(list);
    size_t count = 0;
    while (rest.len && slice_split(&rest, ',', &names[count]))
        count++;
    return count;
}

static struct filter filter_of(const char *tags, const char *tasks, int64_t created_from)
{
    struct slice tag_names[8], task_names[8];
    const struct run_filter wanted = { .is_test = -1,
                                       .created_from = created_from,
                                       .tags = tag_names,
                                       .tag_count = split(tags, tag_names),
                                       .every_tag = true,
                                       .tasks = task_names,
                                       .task_count = split(tasks, task_names) };
    return filter_create((struct slice){ 0 }, &wanted);
}

static struct tag_list *tags_of(const char *list)
{
    struct slice names[8];
    return tag_list_create(names, split(list, names));
}

/* The run is of task "mail", in batch_1, created at 1000, with the given tags. */
static void assert_matches(const struct filter *filter, const char *tags, bool expected)
{
    struct bytes *task = bytes_create(SLICE("mail")),
                 *batch = bytes_create(SLICE("batch_1"));
    struct tag_list *list = tags_of(tags);
    struct facts facts = { "run_1", task, batch, list, 1000 };
    assert_int_equal(filter_matches(filter, &facts), expected);
    bytes_unref(task);
    bytes_unref(batch);
    tag_list_unref(list);
}

static void tag_filter_matches_runs_with_all_of_its_tags(void **state)
{
    (void)state;
    static const struct {
        const char *filter, *run;
        bool matches;
    } cases[] = {
        { "a", "a", true },   { "a", "b", false },       { "a", "", false },
        { "a", "b,a", true }, { "a,b", "a", false },     { "a,b", "b,x,a", true },
        { "a,a", "a", true }, { "a", "A", false },       { "a", "aa", false },
        { "aa", "a", false }, { "a,b,c", "a,b", false },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct filter filter = filter_of(cases[i].filter, "", 0);
        assert_matches(&filter, cases[i].run, cases[i].matches);
        filter_finish(&filter);
    }
}

static void shared_name_matches_by_its_address(void **state)
{
    (void)state;
    struct run run = { .id = "run_1", .tags = tags_of("a,b") };
    struct filter filter = { .kind = TOPIC_TAG, .name = bytes_ref(run.tags->names[1]) };
    struct facts facts = facts_of(&run);
    assert_true(filter_matches(&filter, &facts));
    filter_finish(&filter);
    run_finish(&run);
}

static void run_and_batch_filters_compare_the_id(void **state)
{
    (void)state;
    static const struct {
        enum topic_kind kind;
        const char *name;
        bool matches;
    } cases[] = {
        { TOPIC_RUN, "run_1", true },     { TOPIC_RUN, "run_", false },
        { TOPIC_RUN, "run_11", false },   { TOPIC_RUN, "batch_1", false },
        { TOPIC_BATCH, "batch_1", true }, { TOPIC_BATCH, "batch_2", false },
        { TOPIC_BATCH, "batch_", false }, { TOPIC_BATCH, "run_1", false },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct filter filter = { .kind = cases[i].kind,
                                 .name = bytes_create(slice_of(cases[i].name)) };
        assert_matches(&filter, "", cases[i].matches);
        filter_finish(&filter);
    }
}

static void run_without_a_batch_matches_no_batch_filter(void **state)
{
    (void)state;
    struct filter filter = { .kind = TOPIC_BATCH, .name = bytes_create(SLICE("batch_1")) };
    struct facts facts = { .id = "run_1" };
    assert_false(filter_matches(&filter, &facts));
    filter_finish(&filter);
}

static void tasks_and_creation_time_narrow_every_kind_of_filter(void **state)
{
    (void)state;
    static const struct {
        const char *tasks;
        int64_t created_from;
        bool matches;
    } cases[] = {
        { "", 0, true },         { "mail", 0, true },   { "sms,mail", 0, true },
        { "sms", 0, false },     { "", 1000, true },    { "", 1001, false },
        { "mail", 1001, false }, { "sms", 999, false },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct filter of_all = filter_of("", cases[i].tasks, cases[i].created_from);
        assert_matches(&of_all, "a", cases[i].matches);
        filter_finish(&of_all);
        struct filter of_tag = filter_of("a", cases[i].tasks, cases[i].created_from);
        assert_matches(&of_tag, "a", cases[i].matches);
        filter_finish(&of_tag);
    }
}

static void filter_of_a_topic_alone_has_no_query(void **state)
{
    (void)state;
    static const struct {
        const char *tags, *tasks;
        bool has_query;
    } cases[] = {
        { "", "", false }, { "a", "", false }, { "a,b", "", true },
        { "", "t", true }, { "a", "t", true },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct filter filter = filter_of(cases[i].tags, cases[i].tasks, 1000);
        assert_int_equal(!!filter.query, cases[i].has_query);
        filter_finish(&filter);
    }
}

static void assert_query(struct filter filter, const struct run_filter *expected)
{
    struct query *found = filter_to_query(&filter), *wanted = query_create(expected, 0);
    assert_true(slice_equal(query_key(found), query_key(wanted)));
    query_unref(found);
    query_unref(wanted);
    filter_finish(&filter);
}

static void query_of_a_filter_selects_the_same_runs(void **state)
{
    (void)state;
    struct slice tags[] = { SLICE("a"), SLICE("b") }, tasks[] = { SLICE("t") };
    struct run_filter wanted = { .is_test = -1 };
    assert_query(filter_of("", "", 0), &wanted);
    wanted.created_from = 1000;
    assert_query(filter_of("", "", 1000), &wanted);
    wanted.tags = tags;
    wanted.tag_count = 1;
    wanted.every_tag = true;
    assert_query(filter_of("a", "", 1000), &wanted);
    wanted.tag_count = 2;
    assert_query(filter_of("b,a", "", 1000), &wanted);
    wanted.tasks = tasks;
    wanted.task_count = 1;
    assert_query(filter_of("b,a,b", "t", 1000), &wanted);
    wanted = (struct run_filter){ .is_test = -1, .batch = SLICE("b") };
    assert_query(filter_create((struct slice){ 0 }, &wanted), &wanted);
}

static void zeroed_filter_can_be_finished(void **state)
{
    (void)state;
    struct filter filter = { 0 };
    filter_finish(&filter);
    filter_finish(&filter);
    assert_null(filter.name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tag_filter_matches_runs_with_all_of_its_tags),
        cmocka_unit_test(shared_name_matches_by_its_address),
        cmocka_unit_test(run_and_batch_filters_compare_the_id),
        cmocka_unit_test(run_without_a_batch_matches_no_batch_filter),
        cmocka_unit_test(tasks_and_creation_time_narrow_every_kind_of_filter),
        cmocka_unit_test(filter_of_a_topic_alone_has_no_query),
        cmocka_unit_test(query_of_a_filter_selects_the_same_runs),
        cmocka_unit_test(zeroed_filter_can_be_finished),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
