/* Values are found by their rank, whatever was inserted and removed before. */
#include "tests/support/world/unit.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/list.h"
#include "core/queues/ranking.h"

struct word {
    struct ranked ranked;
    char text[8];
    bool in;
};

static struct slice word_key(const struct ranked *value)
{
    return slice_of(container_of(value, const struct word, ranked)->text);
}

static const char *at(const struct ranking *ranking, uint64_t place)
{
    struct ranked *found = ranking_at(ranking, place);
    return found ? container_of(found, struct word, ranked)->text : "none";
}

static void values_are_ranked_by_their_bytes(void **state)
{
    (void)state;
    struct word words[] = {
        { .text = "b" }, { .text = "" }, { .text = "ab" }, { .text = "a" }
    };
    static const char *const order[] = { "", "a", "ab", "b", "none" };
    struct ranking ranking;

    ranking_init(&ranking, word_key);
    assert_string_equal(at(&ranking, 0), "none");
    for (size_t i = 0; i < 4; i++)
        ranking_insert(&ranking, &words[i].ranked);
    for (size_t i = 0; i < 5; i++)
        assert_string_equal(at(&ranking, i), order[i]);
    assert_string_equal(at(&ranking, UINT64_MAX), "none");
    assert_int_equal(ranking_place(&ranking, SLICE("aa")), 2);
    assert_int_equal(ranking_place(&ranking, SLICE("ab")), 2);
    assert_int_equal(ranking_place(&ranking, SLICE("zz")), 4);
}

enum { WORDS = 500, STEPS = 20000 };

/* Compares all ranks with those found by counting. */
static void check(const struct ranking *ranking, const struct word *words)
{
    uint32_t place = 0;
    for (size_t i = 0; i < WORDS; i++) {
        if (!words[i].in)
            continue;
        assert_int_equal(ranking_place(ranking, slice_of(words[i].text)), place);
        assert_string_equal(at(ranking, place++), words[i].text);
    }
    assert_int_equal(ranking_count(ranking), place);
    assert_null(ranking_at(ranking, place));
}

static void ranks_stay_correct_after_inserts_and_removals(void **state)
{
    (void)state;
    static struct word words[WORDS];
    struct ranking ranking;
    uint32_t seed = 7;

    ranking_init(&ranking, word_key);
    for (unsigned i = 0; i < WORDS; i++)
        snprintf(words[i].text, sizeof(words[i].text), "%05u", i);
    for (unsigned step = 0; step < STEPS; step++) {
        seed = seed * 1664525u + 1013904223u;
        struct word *word = &words[(seed >> 8) % WORDS];
        if (word->in)
            ranking_remove(&ranking, &word->ranked);
        else
            ranking_insert(&ranking, &word->ranked);
        word->in = !word->in;
        if (step % 1000 == 0)
            check(&ranking, words);
    }
    check(&ranking, words);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_ranked_by_their_bytes),
        cmocka_unit_test(ranks_stay_correct_after_inserts_and_removals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
