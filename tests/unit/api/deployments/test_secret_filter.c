/* Secrets are found in one pass over a text, whatever they are and however many. */
#include "api/deployments/secret_filter.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tests/support/world/unit.h"

enum { SECRETS = 1000, TEXT = 64 * 1024 };

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

static int64_t cpu_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* Returns the best of five times, because other programs may be busy. */
static int64_t cost_us(const struct secret_filter *filter, struct slice text)
{
    int64_t best = INT64_MAX;
    for (int i = 0; i < 5; i++) {
        struct buf out = { 0 };
        int64_t start = cpu_us();
        secret_filter_apply(filter, text, &out);
        int64_t took = cpu_us() - start;
        best = took < best ? took : best;
        buf_finish(&out);
    }
    return best;
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

static void cost_does_not_grow_with_secrets_that_begin_alike(void **state)
{
    (void)state;
    static const char *const repeated[] = { "a", "ab", "https://user:" };
    char *text = malloc(TEXT);
    for (size_t i = 0; i < sizeof(repeated) / sizeof(repeated[0]); i++) {
        for (size_t at = 0; at < TEXT; at++)
            text[at] = repeated[i][at % strlen(repeated[i])];
        struct secret_filter one = alike(1, repeated[i]);
        struct secret_filter many = alike(SECRETS, repeated[i]);
        int64_t cost_of_one = cost_us(&one, (struct slice){ text, TEXT });
        int64_t cost_of_many = cost_us(&many, (struct slice){ text, TEXT });
        print_message("64 KiB of \"%s\": one secret %lld us, %d secrets %lld us\n",
                      repeated[i], (long long)cost_of_one, SECRETS,
                      (long long)cost_of_many);
        assert_true(cost_of_many < 20 * (cost_of_one + 1));
        secret_filter_finish(&one);
        secret_filter_finish(&many);
    }
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
        cmocka_unit_test(preparation_is_spread_over_turns_and_linear),
        cmocka_unit_test(half_prepared_filter_is_freed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
