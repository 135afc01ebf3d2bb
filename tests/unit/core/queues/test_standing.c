/* Which limit is named as the one that holds an item back. */
#include "tests/support/world/unit.h"

#include "core/queues/queue.h"

struct job {
    struct queue_item item;
    char id[16];
};

static struct slice job_id(const struct queue_item *item)
{
    return slice_of(((const struct job *)(const void *)item)->id);
}

static struct queue_seat seat(const char *queue, const char *key, const char *limits)
{
    return (struct queue_seat){ .queue = slice_of(queue),
                                .key = slice_of(key),
                                .limits = limits ? slice_of(limits) : (struct slice){ 0 } };
}

static void declare(struct queues *queues, const char *limit, uint32_t per_key,
                    uint32_t total)
{
    limits_register(queues, slice_of(limit));
    limits_change(queues, slice_of(limit), per_key, total);
}

/* Checks the name and the key of the limit that holds the item back. */
static void check_obstacle(const struct queues *queues, const struct job *job,
                           const char *name, bool is_total)
{
    struct queue_standing standing = queues_standing(queues, &job->item, 0);
    assert_true(slice_is(standing.of_limit.name, name));
    assert_int_equal(standing.of_limit.is_total, is_total);
}

static void a_limit_that_opens_by_a_setting_only_is_named_first(void **state)
{
    (void)state;
    const char *const both = "[\"full\",\"other\"]";
    struct job a = { .id = "a" }, b = { .id = "b" };
    struct queues queues;
    queues_init(&queues, 10, job_id);
    declare(&queues, "full", 5, 1);
    declare(&queues, "other", 5, 5);
    queues_run(&queues, &a.item, seat("q", "u", both));
    queues_wait(&queues, &b.item, seat("q", "u", both), 1);
    check_obstacle(&queues, &b, "full", true);

    limits_override_key(&queues, SLICE("full"),
                        &(struct limit_override){ SLICE("u"), 0, 9 });
    check_obstacle(&queues, &b, "full", false);
    limits_end_overrides(&queues, 9);
    declare(&queues, "other", 0, 5);
    check_obstacle(&queues, &b, "other", false);
    declare(&queues, "other", 5, 0);
    check_obstacle(&queues, &b, "other", true);
    limits_configure(&queues, SLICE("full"), &(struct queue_settings){ .paused = true });
    check_obstacle(&queues, &b, "full", true);
    queues_leave(&queues, &a.item);
    queues_leave(&queues, &b.item);
    queues_finish(&queues);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_limit_that_opens_by_a_setting_only_is_named_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
