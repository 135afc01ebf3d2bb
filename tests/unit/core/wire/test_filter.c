/* Which runs a subscription is about. */
#include "tests/support/world/unit.h"

#include "base/mem.h"
#include "core/wire/filter.h"

/* Comma-separated; "" for none. */
static struct bytes **names(const char *list, uint16_t *count)
{
    struct bytes **made = mem_new_array(struct bytes *, 8);
    struct slice rest = slice_of(list), name;
    *count = 0;
    while (rest.len && slice_split(&rest, ',', &name))
        made[(*count)++] = bytes_create(name);
    return made;
}

static void set_tags(struct filter *filter, const char *list)
{
    uint16_t count;
    struct bytes **tags = names(list, &count);
    filter_set_tags(filter, tags, count);
}

static struct tag_list *tags_of(const char *list)
{
    struct slice found[8], rest = slice_of(list);
    size_t count = 0;
    while (rest.len && slice_split(&rest, ',', &found[count]))
        count++;
    return tag_list_create(found, count);
}

/* Of task "mail", in batch_1, created at 1000, with the given tags. */
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

static void a_tag_filter_wants_all_of_its_tags(void **state)
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
        struct filter filter = { .kind = TOPIC_TAG };
        set_tags(&filter, cases[i].filter);
        assert_matches(&filter, cases[i].run, cases[i].matches);
        filter_finish(&filter);
    }
}

static void a_shared_name_matches_without_a_look_at_its_bytes(void **state)
{
    (void)state;
    struct run run = { .id = "run_1", .tags = tags_of("a,b") };
    struct filter filter = { .kind = TOPIC_TAG, .tag_count = 1 };
    filter.name = bytes_ref(run.tags->names[1]);
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

static void a_run_of_no_batch_is_in_none(void **state)
{
    (void)state;
    struct filter filter = { .kind = TOPIC_BATCH, .name = bytes_create(SLICE("batch_1")) };
    struct facts facts = { .id = "run_1" };
    assert_false(filter_matches(&filter, &facts));
    filter_finish(&filter);
}

static void tasks_and_creation_narrow_every_kind(void **state)
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
        struct filter filter = { .kind = TOPIC_ALL };
        uint16_t count;
        struct bytes **tasks = names(cases[i].tasks, &count);
        filter_set_tasks(&filter, tasks, count);
        filter_set_created_from(&filter, cases[i].created_from);
        assert_matches(&filter, "a", cases[i].matches);
        filter.kind = TOPIC_TAG;
        set_tags(&filter, "a");
        assert_matches(&filter, "a", cases[i].matches);
        filter_finish(&filter);
    }
}

static void finishing_a_zeroed_filter_is_fine(void **state)
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
        cmocka_unit_test(a_tag_filter_wants_all_of_its_tags),
        cmocka_unit_test(a_shared_name_matches_without_a_look_at_its_bytes),
        cmocka_unit_test(run_and_batch_filters_compare_the_id),
        cmocka_unit_test(a_run_of_no_batch_is_in_none),
        cmocka_unit_test(tasks_and_creation_narrow_every_kind),
        cmocka_unit_test(finishing_a_zeroed_filter_is_fine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
