/* The index of brief claims finds each row by its hash, in bounded memory. */
#include "store/sqlite/sqlite_claim_index.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/support/world/unit.h"

static bool has(const struct claim_index *index, uint32_t hash, int64_t id)
{
    size_t at = 0;
    for (int64_t found; (found = claim_index_next(index, hash, &at)) != 0;)
        if (found == id)
            return true;
    return false;
}

static void an_empty_index_has_nothing(void **state)
{
    struct claim_index index = { 0 };
    size_t at = 0;
    (void)state;
    assert_int_equal(claim_index_next(&index, 1, &at), 0);
    claim_index_remove(&index, 1, 1);
    claim_index_undo(&index, 0);
    assert_int_equal(index.count, 0);
}

static void keys_have_a_hash_other_than_zero(void **state)
{
    (void)state;
    for (int i = 0; i < 1000; i++) {
        char key[16];
        int len = snprintf(key, sizeof(key), "key %d", i);
        struct slice text = { key, (size_t)len };
        assert_int_not_equal(claim_index_hash(text), 0);
        assert_int_equal(claim_index_hash(text), claim_index_hash(text));
    }
}

enum { ROWS = 20000, HASHES = 1500 };

/* Few hashes, so that searches pass many other rows, also those of neighboring hashes. */
static uint32_t hash_of(int64_t id)
{
    return (uint32_t)(1 + id * 7919 % HASHES);
}

/* Rows are removed in the order in which they were added, and some out of it. */
static void rows_are_found_until_they_are_removed(void **state)
{
    struct claim_index index = { 0 };
    static bool there[ROWS + 1];
    int64_t oldest = 1;
    (void)state;
    srand(1);
    for (int64_t id = 1; id <= ROWS; id++) {
        claim_index_add(&index, hash_of(id), id);
        claim_index_keep(&index);
        there[id] = true;
        int64_t other = 1 + rand() % id;
        for (; id > ROWS / 4 && oldest <= id - ROWS / 4; oldest++) {
            claim_index_remove(&index, hash_of(oldest), oldest);
            there[oldest] = false;
        }
        if (id % 5 == 0) {
            claim_index_remove(&index, hash_of(other), other);
            there[other] = false;
        }
        if (id % 500 == 0)
            for (int64_t any = 1; any <= id; any++)
                assert_int_equal(has(&index, hash_of(any), any), there[any]);
    }
    claim_index_finish(&index);
}

static void undo_removes_what_was_added_since_keep(void **state)
{
    struct claim_index index = { 0 };
    (void)state;
    for (int64_t id = 1; id <= 100; id++)
        claim_index_add(&index, hash_of(id), id);
    claim_index_keep(&index);
    for (int64_t id = 101; id <= 200; id++)
        claim_index_add(&index, hash_of(id), id);
    claim_index_undo(&index, 40);
    for (int64_t id = 1; id <= 200; id++)
        assert_int_equal(has(&index, hash_of(id), id), id <= 140);
    claim_index_undo(&index, 0);
    claim_index_add(&index, hash_of(101), 101); /* ids of removed rows are used again */
    for (int64_t id = 1; id <= 200; id++)
        assert_int_equal(has(&index, hash_of(id), id), id <= 101);
    claim_index_finish(&index);
}

static void ids_continue_beyond_32_bits(void **state)
{
    static const int64_t first = (INT64_C(5) << 32) - 50;
    struct claim_index index = { 0 };
    (void)state;
    for (int64_t id = first; id < first + 100; id++)
        claim_index_add(&index, hash_of(id), id);
    for (int64_t id = first; id < first + 100; id++)
        assert_true(has(&index, hash_of(id), id));
    claim_index_finish(&index);

    claim_index_add(&index, 1, first);
    claim_index_remove(&index, 1, first);
    claim_index_add(&index, 1, 1); /* an empty table begins at 1 again */
    assert_true(has(&index, 1, 1));
    claim_index_finish(&index);
}

static void a_row_takes_at_most_32_bytes(void **state)
{
    enum { MANY = 100000, FEW = 64 };
    struct claim_index index = { 0 };
    (void)state;
    for (int64_t id = 1; id <= MANY; id++) {
        claim_index_add(&index, (uint32_t)id * 2654435761U | 1, id);
        claim_index_keep(&index);
        assert_true(index.count < FEW ||
                    index.capacity * sizeof(struct claim_slot) <= 32 * index.count);
    }
    for (int64_t id = 1; id <= MANY; id++) {
        claim_index_remove(&index, (uint32_t)id * 2654435761U | 1, id);
        assert_true(index.count < FEW ||
                    index.capacity * sizeof(struct claim_slot) <= 32 * index.count);
    }
    assert_int_equal(index.count, 0);
    claim_index_finish(&index);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_index_has_nothing),
        cmocka_unit_test(keys_have_a_hash_other_than_zero),
        cmocka_unit_test(rows_are_found_until_they_are_removed),
        cmocka_unit_test(undo_removes_what_was_added_since_keep),
        cmocka_unit_test(ids_continue_beyond_32_bits),
        cmocka_unit_test(a_row_takes_at_most_32_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
