/* A table finds everything that was inserted and nothing that was removed. */
#include "tests/support/world/unit.h"

#include <stdio.h>

#include "base/mem.h"
#include "base/table.h"

struct item {
    char name[24];
    bool inside, seen;
};

static struct slice item_key(const void *value)
{
    return slice_of(((const struct item *)value)->name);
}

static struct item *make_items(int count)
{
    struct item *items = mem_new_array(struct item, (size_t)count);
    for (int i = 0; i < count; i++)
        snprintf(items[i].name, sizeof(items[i].name), "item-%d", i);
    return items;
}

static void an_empty_table_finds_nothing(void **state)
{
    (void)state;
    struct table table;
    table_init(&table, item_key);
    size_t at = 0;
    assert_null(table_find(&table, SLICE("a")));
    assert_null(table_remove(&table, SLICE("a")));
    assert_null(table_next(&table, &at));
    table_finish(&table);
}

static void inserted_value_is_found_by_its_key(void **state)
{
    (void)state;
    enum { COUNT = 10000 };
    struct item *items = make_items(COUNT);
    struct table table;
    table_init(&table, item_key);
    for (int i = 0; i < COUNT; i++)
        table_insert(&table, &items[i]);
    assert_int_equal(table.count, COUNT);
    for (int i = 0; i < COUNT; i++)
        assert_ptr_equal(table_find(&table, slice_of(items[i].name)), &items[i]);
    assert_null(table_find(&table, SLICE("item-10000")));
    assert_null(table_find(&table, SLICE("")));
    table_finish(&table);
    free(items);
}

/* Inserts and removes few names at random, so that gaps are closed in every position. */
static void remaining_values_are_found_after_removals(void **state)
{
    (void)state;
    enum { COUNT = 40 };
    struct item *items = make_items(COUNT);
    struct table table;
    table_init(&table, item_key);
    uint32_t random = 1;
    size_t inside = 0;
    for (int step = 0; step < 20000; step++) {
        random = random * 1664525 + 1013904223;
        struct item *item = &items[(random >> 16) % COUNT];
        struct slice key = slice_of(item->name);
        if (item->inside)
            assert_ptr_equal(table_remove(&table, key), item);
        else
            table_insert(&table, item);
        inside += item->inside ? (size_t)-1 : 1;
        item->inside = !item->inside;
        assert_int_equal(table.count, inside);
        for (int i = 0; i < COUNT; i++)
            assert_ptr_equal(table_find(&table, slice_of(items[i].name)),
                             items[i].inside ? &items[i] : NULL);
    }
    table_finish(&table);
    free(items);
}

/* The table grows in many steps; removing, finding and walking work meanwhile. */
static void nothing_is_lost_while_the_table_grows(void **state)
{
    (void)state;
    enum { COUNT = 3000 };
    struct item *items = make_items(COUNT);
    struct table table;
    table_init(&table, item_key);
    uint32_t random = 7;
    for (int i = 0; i < COUNT; i++) {
        table_insert(&table, &items[i]);
        items[i].inside = true;
        random = random * 1664525 + 1013904223;
        struct item *victim = &items[(random >> 8) % (uint32_t)(i + 1)];
        if ((random & 3) == 0 && victim->inside) {
            assert_ptr_equal(table_remove(&table, slice_of(victim->name)), victim);
            victim->inside = false;
        }
        size_t at = 0, met = 0;
        while ((i % 37) == 0 && table_next(&table, &at))
            met++;
        assert_true(i % 37 || met == table.count);
        for (int k = 0; (i % 37) == 0 && k <= i; k++)
            assert_ptr_equal(table_find(&table, slice_of(items[k].name)),
                             items[k].inside ? &items[k] : NULL);
    }
    table_finish(&table);
    free(items);
}

static void walk_visits_every_value_once(void **state)
{
    (void)state;
    enum { COUNT = 1000 };
    struct item *items = make_items(COUNT);
    struct table table;
    table_init(&table, item_key);
    for (int i = 0; i < COUNT; i++)
        table_insert(&table, &items[i]);
    size_t at = 0;
    int met = 0;
    for (struct item *item; (item = table_next(&table, &at)); met++) {
        assert_false(item->seen);
        item->seen = true;
    }
    assert_int_equal(met, COUNT);
    table_finish(&table);
    free(items);
}

static void table_takes_less_than_36_bytes_per_entry(void **state)
{
    (void)state;
    enum { COUNT = 100000 };
    struct item *items = make_items(COUNT);
    struct table table;
    table_init(&table, item_key);
    for (int i = 0; i < COUNT; i++)
        table_insert(&table, &items[i]);
    assert_true(table.now.capacity * (sizeof(void *) + sizeof(uint32_t)) < COUNT * 36);
    table_finish(&table);
    free(items);
}

static void hashes_are_equal_for_equal_keys_only(void **state)
{
    (void)state;
    char copy[] = "0123456789abcdefg";
    for (size_t len = 0; len < sizeof(copy); len++) {
        struct slice here = { copy, len }, there = { "0123456789abcdefg", len };
        assert_true(table_hash(here) == table_hash(there));
        if (len)
            assert_true(table_hash(here) != table_hash((struct slice){ copy, len - 1 }));
    }
    assert_true(table_hash(SLICE("a")) != table_hash(SLICE("a\0")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_table_finds_nothing),
        cmocka_unit_test(inserted_value_is_found_by_its_key),
        cmocka_unit_test(remaining_values_are_found_after_removals),
        cmocka_unit_test(nothing_is_lost_while_the_table_grows),
        cmocka_unit_test(walk_visits_every_value_once),
        cmocka_unit_test(table_takes_less_than_36_bytes_per_entry),
        cmocka_unit_test(hashes_are_equal_for_equal_keys_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
