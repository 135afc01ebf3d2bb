/* The ring keeps the newest updates, within its bytes, and knows what it dropped. */
#include "tests/support/world/unit.h"

#include "core/changes/recent.h"

enum { FRAME = 1000 };

static void push(struct recent *recent, uint64_t seq, size_t frame)
{
    struct run run = { .id = "run_1", .version = (uint32_t)seq };
    struct update *update = update_create(seq, &run);
    if (frame) {
        update->frames[3] = bytes_create_empty(frame);
        update->bytes = (uint32_t)frame;
    }
    recent_push(recent, update);
}

static void updates_after_a_position_are_found(void **state)
{
    struct recent recent = { 0 };
    (void)state;
    assert_int_equal(recent_after(&recent, 0), 0);
    for (uint64_t seq = 10; seq <= 1000; seq += 10)
        push(&recent, seq, FRAME);
    assert_int_equal(recent.count, 100);
    assert_int_equal(recent.dropped, 0);
    assert_int_equal(recent_after(&recent, 0), 0);
    assert_int_equal(recent_after(&recent, 10), 1);
    assert_int_equal(recent_after(&recent, 15), 1);
    assert_int_equal(recent_after(&recent, 999), 99);
    assert_int_equal(recent_after(&recent, 1000), 100);
    assert_int_equal(recent_at(&recent, 99)->seq, 1000);
    recent_finish(&recent);
}

static void oldest_update_is_dropped_first_and_its_seq_is_kept(void **state)
{
    struct recent recent = { 0 };
    (void)state;
    for (uint64_t seq = 1; seq <= 10000; seq++) {
        push(&recent, seq, FRAME);
        assert_true(recent.bytes <= RECENT_BYTES);
        assert_int_equal(recent_at(&recent, 0)->seq, recent.dropped + 1);
        assert_int_equal(recent_at(&recent, recent.count - 1)->seq, seq);
    }
    assert_true(recent.dropped > 0);
    recent_finish(&recent);
}

/* Dropped updates no longer count, so the ring does not shrink while it turns. */
static void ring_keeps_its_length_however_often_it_turns(void **state)
{
    struct recent recent = { 0 };
    uint64_t seq = 0;
    (void)state;
    while (!recent.dropped)
        push(&recent, ++seq, FRAME);
    uint32_t full = recent.count;
    for (int i = 0; i < 50000; i++)
        push(&recent, ++seq, FRAME);
    assert_int_equal(recent.count, full);
    recent_finish(&recent);
    assert_int_equal(recent.bytes, 0);
}

static void newest_update_is_kept_however_large(void **state)
{
    struct recent recent = { 0 };
    (void)state;
    push(&recent, 1, FRAME);
    push(&recent, 2, RECENT_BYTES * 2);
    assert_int_equal(recent.count, 1);
    assert_int_equal(recent.dropped, 1);
    push(&recent, 3, FRAME);
    assert_int_equal(recent.count, 1);
    assert_int_equal(recent.dropped, 2);
    recent_finish(&recent);
}

/* Filters match the run as it was at that change. */
static void update_keeps_the_facts_of_its_change(void **state)
{
    struct slice names[] = { SLICE("a"), SLICE("b") };
    struct run run = { .id = "run_1", .version = 3, .created_at = 77 };
    (void)state;
    run.task = bytes_create(SLICE("hello"));
    run.tags = tag_list_create(names, 1);
    struct update *update = update_create(9, &run);
    tag_list_unref(run.tags);
    run.tags = tag_list_create(names, 2);

    struct facts facts = facts_of_update(update);
    assert_string_equal(facts.id, "run_1");
    assert_int_equal(facts.tags->count, 1);
    assert_int_equal(facts.created_at, 77);
    struct recent recent = { 0 };
    recent_push(&recent, update);
    recent_finish(&recent);
    run_finish(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(updates_after_a_position_are_found),
        cmocka_unit_test(oldest_update_is_dropped_first_and_its_seq_is_kept),
        cmocka_unit_test(ring_keeps_its_length_however_often_it_turns),
        cmocka_unit_test(newest_update_is_kept_however_large),
        cmocka_unit_test(update_keeps_the_facts_of_its_change),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
