/* Numbers, durations, times, ids and encodings, as people and other programs write them. */
#include "tests/support/world/unit.h"

#include "base/text.h"

static void number_has_only_digits(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum err expected;
        uint64_t number;
    } cases[] = {
        { "0", OK, 0 },
        { "007", OK, 7 },
        { "18446744073709551615", OK, UINT64_MAX },
        { "18446744073709551616", ERR_INVALID, 0 },
        { "99999999999999999999999", ERR_INVALID, 0 },
        { "", ERR_INVALID, 0 },
        { "-1", ERR_INVALID, 0 },
        { "+1", ERR_INVALID, 0 },
        { " 1", ERR_INVALID, 0 },
        { "1 ", ERR_INVALID, 0 },
        { "0x10", ERR_INVALID, 0 },
        { "1e3", ERR_INVALID, 0 },
        { "1.0", ERR_INVALID, 0 },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint64_t number = 42;
        assert_int_equal(text_to_u64(slice_of(cases[i].text), &number), cases[i].expected);
        assert_true(number == (cases[i].expected ? 42 : cases[i].number));
    }
    uint64_t number;
    assert_int_equal(text_to_u64((struct slice){ 0 }, &number), ERR_INVALID);
}

static void a_signed_number_may_begin_with_a_minus(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum err expected;
        int64_t number;
    } cases[] = {
        { "-5", OK, -5 },
        { "-0", OK, 0 },
        { "9223372036854775807", OK, INT64_MAX },
        { "-9223372036854775808", OK, INT64_MIN },
        { "9223372036854775808", ERR_INVALID, 0 },
        { "-9223372036854775809", ERR_INVALID, 0 },
        { "-", ERR_INVALID, 0 },
        { "--1", ERR_INVALID, 0 },
        { "", ERR_INVALID, 0 },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int64_t number = 42;
        assert_int_equal(text_to_i64(slice_of(cases[i].text), &number), cases[i].expected);
        assert_true(number == (cases[i].expected ? 42 : cases[i].number));
    }
}

static void units_of_a_duration_add_up(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum err expected;
        int64_t ms;
    } cases[] = {
        { "90s", OK, 90000 },
        { "2h30m", OK, 9000000 },
        { "1hr", OK, 3600000 },
        { "1hr30m", OK, 5400000 },
        { "1w", OK, 604800000 },
        { "2d12h", OK, 216000000 },
        { "30m2h", OK, 9000000 },
        { "0s", OK, 0 },
        { "1s5s", ERR_INVALID, 0 },
        { "1h2hr", ERR_INVALID, 0 }, /* both are units of hours */
        { "000000000001m", OK, 60000 },
        { "", ERR_INVALID, 0 },
        { "s", ERR_INVALID, 0 },
        { "90", ERR_INVALID, 0 },
        { "1h 30m", ERR_INVALID, 0 },
        { "1.5h", ERR_INVALID, 0 },
        { "-1h", ERR_INVALID, 0 },
        { "1H", ERR_INVALID, 0 },
        { "1ms", ERR_INVALID, 0 },
        { "1mo", ERR_INVALID, 0 },
        { "1hour", ERR_INVALID, 0 },
        { "1y", ERR_INVALID, 0 },
        { "99999999999999999999w", ERR_INVALID, 0 },
        { "9223372036854775807w", ERR_INVALID, 0 },
        { "14285714285w1d1h1m1s", ERR_INVALID, 0 }, /* the sum is too large */
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int64_t ms = 42;
        assert_int_equal(text_to_duration_ms(slice_of(cases[i].text), &ms),
                         cases[i].expected);
        assert_true(ms == (cases[i].expected ? 42 : cases[i].ms));
    }
}

static void a_duration_has_at_most_a_hundred_characters(void **state)
{
    (void)state;
    char text[102];
    int64_t ms;
    memset(text, '0', sizeof(text));
    text[99] = 's';
    assert_int_equal(text_to_duration_ms((struct slice){ text, 100 }, &ms), OK);
    text[99] = '0';
    text[100] = 's';
    assert_int_equal(text_to_duration_ms((struct slice){ text, 101 }, &ms), ERR_INVALID);
}

static void duration_is_written_in_compact_form(void **state)
{
    (void)state;
    static const struct {
        uint64_t seconds;
        const char *expected;
    } cases[] = {
        { 0, "0s" },        { 1, "1s" },
        { 90, "1m30s" },    { 3600, "1h" },
        { 5400, "1h30m" },  { 86400, "1d" },
        { 604800, "1w" },   { 694861, "1w1d1h1m1s" },
        { 604801, "1w1s" }, { 3601, "1h1s" },
        { 60, "1m" },       { UINT64_MAX, "30500568904943w7h15s" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[48];
        text_from_seconds(cases[i].seconds, text);
        assert_string_equal(text, cases[i].expected);
    }
}

/* The expected texts are those of JavaScript's toISOString in UTC. */
static void times_are_read_as_javascript_reads_them(void **state)
{
    (void)state;
    static const struct {
        const char *text, *expected;
    } cases[] = {
        { "2030", "2030-01-01T00:00:00.000Z" },
        { "2024-01", "2024-01-01T00:00:00.000Z" },
        { "2024-01-31", "2024-01-31T00:00:00.000Z" },
        { "2024-02-29", "2024-02-29T00:00:00.000Z" },
        { "2024-02-30", "2024-03-01T00:00:00.000Z" },
        { "2023-02-29", "2023-03-01T00:00:00.000Z" },
        { "2024-12-31T23:59:59.999Z", "2024-12-31T23:59:59.999Z" },
        { "2024-01-31T09:00", "2024-01-31T09:00:00.000Z" },
        { "2024-01-31T09:00Z", "2024-01-31T09:00:00.000Z" },
        { "2024-01-31T09:00:01", "2024-01-31T09:00:01.000Z" },
        { "2024-01-31 09:00:00Z", "2024-01-31T09:00:00.000Z" },
        { "2024-01-31t09:00z", "2024-01-31T09:00:00.000Z" },
        { "2024-01-31T24:00:00Z", "2024-02-01T00:00:00.000Z" },
        { "2024-01-31T09:00:00.1Z", "2024-01-31T09:00:00.100Z" },
        { "2024-01-31T09:00:00.123999999Z", "2024-01-31T09:00:00.123Z" },
        { "2024-01-31T09:00:00+01:00", "2024-01-31T08:00:00.000Z" },
        { "2024-01-31T09:00:00+0100", "2024-01-31T08:00:00.000Z" },
        { "2024-01-31T09:00-14:00", "2024-01-31T23:00:00.000Z" },
        { "2024-01-31T09:00:00+23:59", "2024-01-30T09:01:00.000Z" },
        { "2024-01-31T09:00:00-00:00", "2024-01-31T09:00:00.000Z" },
        { "2024T09:00Z", "2024-01-01T09:00:00.000Z" },
        { "+002024-01-31", "2024-01-31T00:00:00.000Z" },
        { "0000", "0000-01-01T00:00:00.000Z" },
        { "1969-12-31T23:59:59.999Z", "1969-12-31T23:59:59.999Z" },
        { "1600-02-29", "1600-02-29T00:00:00.000Z" },
        { "1900-02-28T23:59:59Z", "1900-02-28T23:59:59.000Z" },
        { "9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59.999Z" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int64_t ms;
        char text[TIME_TEXT_LEN + 1];
        assert_int_equal(text_to_time(slice_of(cases[i].text), &ms), OK);
        text_from_time(ms, text);
        assert_string_equal(text, cases[i].expected);
    }
}

static void number_is_a_time_within_the_range_of_javascript_dates(void **state)
{
    int64_t time = 7;
    (void)state;
    assert_int_equal(text_number_to_time(1500.9, &time), OK);
    assert_int_equal(time, 1500);
    assert_int_equal(text_number_to_time(-8.64e15, &time), OK);
    assert_int_equal(time, -INT64_C(8640000000000000));
    assert_int_equal(text_number_to_time(8.64e15 + 1, &time), ERR_INVALID);
    assert_int_equal(text_number_to_time(-1e300, &time), ERR_INVALID);
    assert_int_equal(time, -INT64_C(8640000000000000));
}

static void moment_is_a_date_or_a_duration_from_now(void **state)
{
    static const struct {
        const char *text;
        enum err err;
        int64_t moment;
    } cases[] = {
        { "90s", OK, 91000 },
        { "1970-01-01T00:00:05Z", OK, 5000 },
        { "1969-12-31T23:59:59Z", OK, -1000 },
        { "9999-12-31T23:59:59.999Z", OK, INT64_C(253402300799999) },
        { "+010000-01-01", ERR_INVALID, 7 },
        { "450000w", ERR_INVALID, 7 },
        { "soon", ERR_INVALID, 7 },
        { "", ERR_INVALID, 7 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int64_t moment = 7;
        enum err err = text_to_moment(slice_of(cases[i].text), 1000, &moment);
        assert_int_equal(err, cases[i].err);
        assert_int_equal(moment, cases[i].moment);
    }
}

static void invalid_time_is_rejected(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "",
        "2",
        "203",
        "20300",
        "1h",
        "90s",
        "2024-",
        "2024-1",
        "2024-1-5",
        "2024-00-01",
        "2024-13-01",
        "2024-01-00",
        "2024-01-32",
        "2024-01-31T",
        "2024-01-31T09",
        "2024-01-31T9:00Z",
        "2024-01-31T25:00Z",
        "2024-01-31T24:00:01Z",
        "2024-01-31T09:60Z",
        "2024-01-31T09:00:60Z",
        "2024-01-31T09:00:00.Z",
        "2024-01-31T09:00:00,5Z",
        "2024-01-31T09:00:00 Z",
        "2024-01-31T09:00:00+01",
        "2024-01-31T09:00:00+24:00",
        "2024-01-31T09:00:00+01:60",
        "2024-01-31T09:00Z+01:00",
        "2024-01-31T09:00:00Zx",
        "2024-01-31x",
        "-000000-01-01",
        "+02024-01-01",
        "+275760-09-13T00:00:00.001Z",
        "+999999-01-01",
        "-999999-01-01",
        "tomorrow",
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int64_t ms = 42;
        assert_int_equal(text_to_time(slice_of(cases[i]), &ms), ERR_INVALID);
        assert_int_equal(ms, 42);
    }
}

static void the_first_and_the_last_date_are_read(void **state)
{
    (void)state;
    int64_t ms;
    assert_int_equal(text_to_time(SLICE("+275760-09-13T00:00:00Z"), &ms), OK);
    assert_true(ms == INT64_C(8640000000000000));
    assert_int_equal(text_to_time(SLICE("-271821-04-20"), &ms), OK);
    assert_true(ms == INT64_C(-8640000000000000));
    assert_int_equal(text_to_time(SLICE("1970-01-01"), &ms), OK);
    assert_true(ms == 0);
}

static void every_day_of_two_thousand_years_reads_back(void **state)
{
    (void)state;
    int64_t ms = INT64_C(-62167219200000); /* 0000-01-01 */
    char text[TIME_TEXT_LEN + 1];
    for (int day = 0; day < 800000; day++, ms += 86400000) {
        int64_t again;
        text_from_time(ms + day % 1000, text);
        assert_int_equal(text_to_time(slice_of(text), &again), OK);
        assert_true(again == ms + day % 1000);
    }
}

static void times_outside_four_digit_years_become_the_nearest(void **state)
{
    (void)state;
    char text[TIME_TEXT_LEN + 1];
    text_from_time(INT64_MAX, text);
    assert_string_equal(text, "9999-12-31T23:59:59.999Z");
    text_from_time(INT64_MIN, text);
    assert_string_equal(text, "0000-01-01T00:00:00.000Z");
}

static void ids_of_later_times_sort_later(void **state)
{
    (void)state;
    char earlier[ID_MAX], later[ID_MAX];
    for (int64_t ms = 1; ms < INT64_C(4000000000000); ms = ms * 3 + 1) {
        text_make_id("run", ms, earlier);
        text_make_id("run", ms + 1, later);
        assert_true(strcmp(earlier, later) < 0);
        assert_true(text_is_id(slice_of(earlier), "run"));
        assert_int_equal(strlen(earlier), 4 + ID_RANDOM_LEN);
    }
}

static void ids_of_one_time_differ_in_their_second_half(void **state)
{
    (void)state;
    char a[ID_MAX], b[ID_MAX];
    text_make_id("waitpoint", 1706691600123, a);
    text_make_id("waitpoint", 1706691600123, b);
    assert_memory_equal(a, b, 10 + 9);
    assert_string_not_equal(a, b);
}

static void consecutive_ids_increase(void **state)
{
    (void)state;
    char last[ID_MAX] = "", before[ID_MAX];
    for (int i = 0; i < 200000; i++) {
        memcpy(before, last, sizeof(before));
        text_make_next_id("run", 1706691600123 + i / 100000, last);
        if (strcmp(before, last) >= 0 || !text_is_id(slice_of(last), "run"))
            fail_msg("%s behind %s", last, before);
    }
    assert_memory_not_equal(before + 4 + 9 + 4, last + 4 + 9 + 4,
                            8); /* the rest is random */
}

static void consecutive_ids_of_several_kinds_increase(void **state)
{
    (void)state;
    char last[ID_MAX] = "", before[2][ID_MAX] = { "", "" };
    for (int i = 0; i < 2000; i++) {
        text_make_next_id(i % 2 ? "bulk" : "waitpoint", 1706691600123, last);
        if (strcmp(before[i % 2], last) >= 0)
            fail_msg("%s behind %s", last, before[i % 2]);
        memcpy(before[i % 2], last, sizeof(last));
    }
}

static void ids_increase_after_one_from_a_clock_that_is_ahead(void **state)
{
    (void)state;
    enum { NOW_S = 1706691600 };
    char ahead[ID_MAX], last[ID_MAX] = "", before[ID_MAX];
    text_make_id("run", (NOW_S + 20) * INT64_C(1000), ahead);
    memset(ahead + 4 + 9, 'z', 4); /* its counter for this millisecond is full */
    text_note_id(ahead, last);
    for (int i = 0; i < 2000; i++) {
        memcpy(before, last, sizeof(before));
        text_make_next_id("waitpoint", NOW_S * INT64_C(1000), last);
        if (strcmp(strchr(before, '_'), strchr(last, '_')) >= 0)
            fail_msg("%s behind %s", last, before);
    }
    memcpy(before, last, sizeof(before));
    text_note_id(ahead, last);
    text_note_id("run_short", last);
    text_note_id("run_zzzzzzzzzzzzzzzzzzzzzzzzz1", last);
    text_note_id("none", last);
    assert_string_equal(last, before); /* each of them is older or not an id of ours */
}

static void id_must_have_its_prefix(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool expected;
    } cases[] = {
        { "run_7h3k9mq2w5xz8c4v1b6ny", true },
        { "run_cm0abcdefghijklmnopqrst1l0", true }, /* 26 characters, with l and 0 */
        { "run_7h3k9mq2w5xz8c4v1b6n", false },
        { "run_cm0abcdefghijklmnopqrst1l0x", false },
        { "run_7h3k9mq2w5xz8c4v1b6nY", false },
        { "run_7h3k9mq2w5xz8c4v1b6n_", false },
        { "run-7h3k9mq2w5xz8c4v1b6ny", false },
        { "batch_7h3k9mq2w5xz8c4v1b6ny", false },
        { "runs_7h3k9mq2w5xz8c4v1b6ny", false },
        { "run_", false },
        { "run", false },
        { "ru", false },
        { "", false },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_int_equal(text_is_id(slice_of(cases[i].text), "run"), cases[i].expected);
}

/* A random byte modulo 192 would be below 64 half of the time. */
static void random_characters_are_evenly_distributed(void **state)
{
    (void)state;
    enum { DRAWN = 60000, COUNT = 192 };
    static char text[DRAWN], alphabet[COUNT + 1];
    int often[3] = { 0 };
    for (int i = 0; i < COUNT; i++)
        alphabet[i] = (char)(i + 1);
    text_random(text, DRAWN, alphabet);
    for (int i = 0; i < DRAWN; i++) {
        int place = (unsigned char)text[i] - 1;
        assert_in_range(place, 0, COUNT - 1);
        often[place / 64]++;
    }
    for (int i = 0; i < 3; i++)
        assert_in_range(often[i], DRAWN / 3 - 1500, DRAWN / 3 + 1500); /* 13 sigma */
}

static void base64url_is_written_without_padding(void **state)
{
    (void)state;
    static const struct {
        struct slice bytes;
        const char *expected;
    } cases[] = {
        { { "", 0 }, "" },           { { "f", 1 }, "Zg" },
        { { "fo", 2 }, "Zm8" },      { { "foo", 3 }, "Zm9v" },
        { { "foob", 4 }, "Zm9vYg" }, { { "\xff\xef\xfe", 3 }, "_-_-" },
        { { "\0\0", 2 }, "AAA" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[16];
        unsigned char bytes[16];
        size_t len = text_to_base64url(cases[i].bytes, text);
        text[len] = '\0';
        assert_string_equal(text, cases[i].expected);
        assert_int_equal(text_from_base64url(slice_of(text), bytes, &len), OK);
        assert_int_equal(len, cases[i].bytes.len);
        if (len)
            assert_memory_equal(bytes, cases[i].bytes.ptr, len);
    }
}

static void base64url_has_only_one_valid_spelling(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "Z", "Zg==", "Zm8=", "Zh", "Zm9", "Zm9v\n", " Zg", "Zm+v", "Zm/v", "AAAAA", "Z g",
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        unsigned char bytes[16];
        size_t len = 42;
        assert_int_equal(text_from_base64url(slice_of(cases[i]), bytes, &len), ERR_INVALID);
        assert_int_equal(len, 42);
    }
}

static void hex_is_lower_case(void **state)
{
    (void)state;
    char text[9];
    text_to_hex((const unsigned char *)"\x00\x1f\xab\xff", 4, text);
    assert_string_equal(text, "001fabff");
}

static void utf8_must_be_complete_and_shortest(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool expected;
    } cases[] = {
        { "", true },
        { "plain text of more than eight bytes", true },
        { "12345678\xc3\xa4", true },
        { "\x7f", true },
        { "\xc2\x80", true },
        { "\xdf\xbf", true },
        { "\xe0\xa0\x80", true },
        { "\xed\x9f\xbf", true },
        { "\xee\x80\x80", true },
        { "\xef\xbf\xbf", true },
        { "\xf0\x90\x80\x80", true },
        { "\xf4\x8f\xbf\xbf", true },
        { "\x80", false },
        { "\xbf", false },
        { "\xc0\x80", false },         /* overlong */
        { "\xc1\xbf", false },         /* overlong */
        { "\xe0\x9f\xbf", false },     /* overlong */
        { "\xf0\x8f\xbf\xbf", false }, /* overlong */
        { "\xed\xa0\x80", false },     /* surrogate */
        { "\xed\xbf\xbf", false },     /* surrogate */
        { "\xf4\x90\x80\x80", false }, /* above U+10FFFF */
        { "\xf5\x80\x80\x80", false },
        { "\xff", false },
        { "\xc3", false },
        { "\xe2\x82", false },
        { "\xf0\x9f\x98", false },
        { "\xc3\x28", false },
        { "\xe2\x28\xa1", false },
        { "\xe2\x82\x28", false },
        { "\xf0\x9f\x98\x28", false },
        { "1234567\xc3", false },
        { "12345678\x80", false },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_int_equal(text_is_utf8(slice_of(cases[i].text)), cases[i].expected);
    assert_true(text_is_utf8((struct slice){ 0 }));
    assert_true(text_is_utf8((struct slice){ "a\0b", 3 }));
}

static void percent_escapes_are_decoded(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool plus_is_space;
        const char *expected; /* NULL: rejected */
    } cases[] = {
        { "", false, "" },
        { "a%20b", false, "a b" },
        { "a+b", false, "a+b" },
        { "a+b%2B", true, "a b+" },
        { "%41%c3%A4", false, "A\xc3\xa4" },
        { "%25%32%30", false, "%20" }, /* decoded once, not twice */
        { "\xc3\xa4", false, "\xc3\xa4" },
        { "%", false, NULL },
        { "%4", false, NULL },
        { "a%4g", false, NULL },
        { "%g4", false, NULL },
        { "%%41", false, NULL },
        { "% 41", false, NULL },
        { "%00", false, NULL },
        { "%ff", false, NULL },
        { "%c3", false, NULL },
        { "\xc3", false, NULL },
        { "%ed%a0%80", false, NULL },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char out[32] = { 0 };
        size_t len = 42;
        enum err err =
            text_percent_decode(slice_of(cases[i].text), cases[i].plus_is_space, out, &len);
        assert_int_equal(err, cases[i].expected ? OK : ERR_INVALID);
        if (cases[i].expected)
            assert_true(slice_is((struct slice){ out, len }, cases[i].expected));
        else
            assert_int_equal(len, 42);
    }
    char out[4];
    size_t len;
    assert_int_equal(text_percent_decode((struct slice){ "a\0b", 3 }, false, out, &len),
                     ERR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(number_has_only_digits),
        cmocka_unit_test(a_signed_number_may_begin_with_a_minus),
        cmocka_unit_test(units_of_a_duration_add_up),
        cmocka_unit_test(a_duration_has_at_most_a_hundred_characters),
        cmocka_unit_test(duration_is_written_in_compact_form),
        cmocka_unit_test(times_are_read_as_javascript_reads_them),
        cmocka_unit_test(number_is_a_time_within_the_range_of_javascript_dates),
        cmocka_unit_test(moment_is_a_date_or_a_duration_from_now),
        cmocka_unit_test(invalid_time_is_rejected),
        cmocka_unit_test(the_first_and_the_last_date_are_read),
        cmocka_unit_test(every_day_of_two_thousand_years_reads_back),
        cmocka_unit_test(times_outside_four_digit_years_become_the_nearest),
        cmocka_unit_test(ids_of_later_times_sort_later),
        cmocka_unit_test(ids_of_one_time_differ_in_their_second_half),
        cmocka_unit_test(consecutive_ids_increase),
        cmocka_unit_test(consecutive_ids_of_several_kinds_increase),
        cmocka_unit_test(ids_increase_after_one_from_a_clock_that_is_ahead),
        cmocka_unit_test(id_must_have_its_prefix),
        cmocka_unit_test(random_characters_are_evenly_distributed),
        cmocka_unit_test(base64url_is_written_without_padding),
        cmocka_unit_test(base64url_has_only_one_valid_spelling),
        cmocka_unit_test(hex_is_lower_case),
        cmocka_unit_test(utf8_must_be_complete_and_shortest),
        cmocka_unit_test(percent_escapes_are_decoded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
