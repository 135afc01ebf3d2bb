/* Secrets are found in one pass over a text, whatever they are and however many. The cost is
 * counted, not timed. */
#include "api/deployments/secret_filter.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/support/world/unit.h"

enum { SECRETS = 1000, TEXT = 1 << 20, PIECE = 64 * 1024 };

/* Returns the number of work units; at least one per turn. */
static unsigned prepare(struct secret_filter *filter, unsigned asks_a_turn, unsigned *turns)
{
    struct loop *loop = loop_create(NULL);
    unsigned units = 0;
    bool is_done = false;
    for (*turns = 0; !is_done; ++*turns) {
        struct timeslice timeslice = loop_timeslice(loop);
        loop_set_budget(loop, asks_a_turn);
        loop_turn(loop, 1);
        is_done = secret_filter_prepare(filter, &timeslice);
        units += timeslice.units;
    }
    loop_destroy(loop);
    return units;
}

static struct secret_filter filter_of(char secrets[][64], size_t count)
{
    struct secret_filter filter = { 0 };
    unsigned turns;
    for (size_t i = 0; i < count; i++)
        secret_filter_add(&filter, slice_of(secrets[i]));
    prepare(&filter, 1000, &turns);
    return filter;
}

/* ---- the right bytes are redacted ---- */

/* Redacts the text by searching for every secret at every place. */
static void look_everywhere(char secrets[][64], size_t count, const char *text,
                            struct buf *out)
{
    size_t len = strlen(text), until = 0;
    for (size_t at = 0; at < len; at++) {
        size_t longest = 0;
        for (size_t i = 0; i < count; i++)
            if (strlen(secrets[i]) > longest &&
                !strncmp(text + at, secrets[i], strlen(secrets[i])))
                longest = strlen(secrets[i]);
        if (longest && at >= until)
            buf_add_text(out, "<redacted>");
        if (at + longest > until)
            until = at + longest;
        if (at >= until) {
            buf_add_char(out, text[at]);
            until = at + 1;
        }
    }
}

static void draw(char *text, size_t least, size_t most, unsigned letters)
{
    size_t len = least + (size_t)rand() % (most - least + 1);
    for (size_t i = 0; i < len; i++)
        text[i] = (char)('a' + rand() % (int)letters);
    text[len] = '\0';
}

static void secrets_of_few_letters_are_all_found(void **state)
{
    (void)state;
    srand(7);
    for (int round = 0; round < 2000; round++) {
        char secrets[6][64], text[200];
        struct buf expected = { 0 }, out = { 0 };
        struct secret_scan scan = { 0 };
        size_t count = 1 + (size_t)rand() % 6, piece = 1 + (size_t)rand() % 40;
        unsigned letters = 1 + (unsigned)rand() % 3;
        for (size_t i = 0; i < count; i++)
            draw(secrets[i], SECRET_LEAST, 14, letters);
        draw(text, 0, 150, letters);
        struct secret_filter filter = filter_of(secrets, count);
        for (struct slice rest = slice_of(text); rest.len;) {
            size_t len = rest.len < piece ? rest.len : piece;
            secret_scan_add(&scan, &filter, (struct slice){ rest.ptr, len }, &out);
            rest = slice_from(rest, len);
        }
        secret_scan_end(&scan, &out);
        look_everywhere(secrets, count, text, &expected);
        assert_int_equal(out.len, expected.len);
        assert_memory_equal(buf_slice(&out).ptr, buf_slice(&expected).ptr, out.len);
        buf_finish(&out);
        buf_finish(&expected);
        secret_filter_finish(&filter);
    }
}

/* ---- cost ---- */

/* Reads the text in pieces, as a build's log arrives. Asserts the bound, which depends on
 * neither the number of secrets nor their length, and returns the result. */
static struct buf read_within_bound(const struct secret_filter *filter, struct slice text,
                                    size_t piece)
{
    struct secret_scan scan = { 0 };
    struct buf out = { 0 };
    for (size_t at = 0; at < text.len; at += piece) {
        struct slice rest = slice_from(text, at);
        rest.len = rest.len < piece ? rest.len : piece;
        secret_scan_add(&scan, filter, rest, &out);
    }
    assert_int_equal(scan.read, text.len);
    assert_true(scan.looks <= text.len * SECRET_LOOKS);
    secret_scan_end(&scan, &out);
    return out;
}

/* Makes secrets of 250 bytes that differ at the end, or whose suffixes begin others. */
static struct secret_filter alike(size_t count, const char *repeated)
{
    struct secret_filter filter = { 0 };
    unsigned turns;
    for (size_t i = 0; i < count; i++) {
        char secret[300];
        size_t len = 0;
        for (; len < 200 + i % 50; len++)
            secret[len] = repeated[len % strlen(repeated)];
        snprintf(secret + len, sizeof(secret) - len, "%zu", i);
        secret_filter_add(&filter, slice_of(secret));
    }
    prepare(&filter, 1000000, &turns);
    return filter;
}

static struct slice repeat(const char *what, char *text)
{
    for (size_t at = 0; at < TEXT; at++)
        text[at] = what[at % strlen(what)];
    return (struct slice){ text, TEXT };
}

static void cost_does_not_grow_with_secrets_that_begin_alike(void **state)
{
    (void)state;
    static const char *const repeated[] = { "a", "ab", "https://user:" };
    char *text = malloc(TEXT);
    for (size_t i = 0; i < sizeof(repeated) / sizeof(repeated[0]); i++) {
        struct secret_filter many = alike(SECRETS, repeated[i]);
        struct slice line = repeat(repeated[i], text);
        struct buf out = read_within_bound(&many, line, PIECE);
        assert_true(slice_equal(buf_slice(&out), line)); /* none is there completely */
        buf_finish(&out);
        secret_filter_finish(&many);
    }
    free(text);
}

/* Every place of the text ends up to a thousand secrets. They overlap, so they are one. */
static void cost_does_not_grow_with_secrets_that_are_prefixes_of_each_other(void **state)
{
    (void)state;
    struct secret_filter filter = { 0 };
    char *text = malloc(TEXT), secret[SECRETS + SECRET_LEAST];
    unsigned turns;
    memset(secret, 'a', sizeof(secret));
    for (size_t i = 0; i < SECRETS; i++)
        secret_filter_add(&filter, (struct slice){ secret, SECRET_LEAST + i });
    prepare(&filter, 1000000, &turns);
    assert_int_equal(filter.node_count, SECRETS + SECRET_LEAST);
    struct buf out = read_within_bound(&filter, repeat("a", text), PIECE);
    assert_true(slice_is(buf_slice(&out), "<redacted>"));
    buf_finish(&out);
    secret[SECRETS + SECRET_LEAST - 2] = 'b'; /* the longest one is missed at its end */
    out = read_within_bound(&filter, (struct slice){ secret, sizeof(secret) - 1 }, 1);
    assert_true(slice_is(buf_slice(&out), "<redacted>b"));
    buf_finish(&out);
    secret_filter_finish(&filter);
    free(text);
}

/* The root and every node below it have a child for each byte. */
static void cost_does_not_grow_with_the_number_of_branches(void **state)
{
    (void)state;
    struct secret_filter filter = { 0 };
    char *text = malloc(TEXT);
    unsigned turns;
    for (unsigned i = 0; i < 256 * 16; i++) {
        char secret[] = { (char)i, (char)(i / 256), (char)(i * 7), 1, 2, 3, 4, 5 };
        secret_filter_add(&filter, (struct slice){ secret, sizeof(secret) });
    }
    prepare(&filter, 1000000, &turns);
    for (size_t at = 0; at < TEXT; at++)
        text[at] = (char)(at * 31);
    struct buf out = read_within_bound(&filter, (struct slice){ text, TEXT }, PIECE);
    buf_finish(&out);
    secret_filter_finish(&filter);
    free(text);
}

/* Otherwise every second byte of a log would be redacted. */
static void secret_of_one_character_costs_nothing(void **state)
{
    (void)state;
    struct secret_filter filter = { 0 };
    char *text = malloc(TEXT);
    unsigned turns;
    secret_filter_add(&filter, SLICE("a"));
    prepare(&filter, 1000000, &turns);
    struct slice line = repeat("ab", text);
    struct buf out = read_within_bound(&filter, line, PIECE);
    assert_true(slice_equal(buf_slice(&out), line));
    assert_null(filter.nodes);
    buf_finish(&out);
    secret_filter_finish(&filter);
    free(text);
}

static void preparation_is_spread_over_turns_and_linear(void **state)
{
    (void)state;
    struct secret_filter filter = { 0 };
    size_t bytes = 0;
    unsigned turns;
    for (int i = 0; i < SECRETS; i++) {
        char secret[64];
        snprintf(secret, sizeof(secret), "%d-a-secret-that-begins-with-its-number", i);
        bytes += strlen(secret);
        secret_filter_add(&filter, slice_of(secret));
    }
    unsigned units = prepare(&filter, 1, &turns);
    assert_true(turns > 10);
    assert_true(units <= bytes + 1 + turns);
    assert_true(filter.looks <= bytes * SECRET_LOOKS);
    secret_filter_finish(&filter);
}

static void half_prepared_filter_is_freed(void **state)
{
    (void)state;
    struct secret_filter filter = { 0 };
    struct loop *loop = loop_create(NULL);
    struct timeslice timeslice = loop_timeslice(loop);
    for (int i = 0; i < SECRETS; i++) {
        char secret[64];
        snprintf(secret, sizeof(secret), "%d-a-secret-that-begins-with-its-number", i);
        secret_filter_add(&filter, slice_of(secret));
    }
    loop_set_budget(loop, 1);
    assert_false(secret_filter_prepare(&filter, &timeslice));
    secret_filter_finish(&filter);
    loop_destroy(loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(secrets_of_few_letters_are_all_found),
        cmocka_unit_test(cost_does_not_grow_with_secrets_that_begin_alike),
        cmocka_unit_test(cost_does_not_grow_with_secrets_that_are_prefixes_of_each_other),
        cmocka_unit_test(cost_does_not_grow_with_the_number_of_branches),
        cmocka_unit_test(secret_of_one_character_costs_nothing),
        cmocka_unit_test(preparation_is_spread_over_turns_and_linear),
        cmocka_unit_test(half_prepared_filter_is_freed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
