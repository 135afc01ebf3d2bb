/* Escaping in steps of any size gives the same bytes; the length is also measured without
 * it. */
#include "tests/support/world/unit.h"

#include "base/buf.h"
#include "base/escape.h"
#include "base/utf8.h"
#include "tests/support/world/sim.h"

/* Escapes one character at a time, as RFC 8259 §7 describes. */
static void escape_slowly(struct slice text, struct buf *out)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        const unsigned char *at = (const unsigned char *)text.ptr + i;
        if (text.len - i >= 3 && at[0] == 0xED && at[1] >= 0xA0 && at[1] < 0xC0 &&
            (at[2] & 0xC0) == 0x80) {
            buf_print(out, "\\u%04x", 0xD000u + (at[1] - 0x80u) * 64 + (at[2] - 0x80u));
            i += 2;
            continue;
        }
        const char *pair = strchr("\"\"\\\\\bb\ff\nn\rr\tt", c);
        if (c && pair && (c < 0x20 || c == '"' || c == '\\'))
            buf_print(out, "\\%c", pair[1]);
        else if ((unsigned char)c < 0x20)
            buf_print(out, "\\u%04x", (unsigned)c);
        else
            buf_add_char(out, c);
    }
}

/* Makes long stretches of one kind and short ones of all kinds. The kinds are plain and
 * wide characters, pairs, control characters, Korean syllables and halves of surrogate
 * pairs. Characters are never cut. */
static void make_text(struct draws *draws, size_t len, struct buf *text)
{
    static const char *const kinds[] = { "abcdefghijk",  "\xc3\xa9\xe2\x82\xac",
                                         "\"\\",         "\n\t\b\f\r",
                                         "\x01\x1f\x0b", "a\"\n\x02\xc3\xa9" };
    static const char *const whole[] = { "\xed\x9e\xa3", "\xed\xa0\xbd", "\xed\xbf\xbf",
                                         "x" };
    while (text->len < len) {
        uint32_t which = draw(draws, 8);
        for (uint32_t left = which < 6 ? 0 : draw(draws, 20); left; left--)
            buf_add_text(text, whole[draw(draws, 4)]);
        if (which >= 6)
            continue;
        const char *kind = kinds[which];
        size_t count = strlen(kind);
        for (uint32_t left = draw(draws, 40); left; left--)
            buf_add_char(text, kind[draw(draws, (uint32_t)count)]);
    }
}

static void escape_in_steps(struct draws *draws, struct slice text, struct buf *out)
{
    while (text.len) {
        char step[ESCAPE_ROOM_LEAST + 200];
        size_t room = ESCAPE_ROOM_LEAST + draw(draws, 200), taken;
        size_t len = escape_step(text, step, room, &taken);
        assert_true(taken > 0 && len <= room);
        assert_int_equal(len, escape_len((struct slice){ text.ptr, taken }));
        buf_add(out, (struct slice){ step, len });
        text = slice_from(text, taken);
    }
}

static void escaping_in_steps_of_any_size_gives_the_same_bytes(void **state)
{
    struct draws draws = { 7 };
    (void)state;
    for (size_t len = 0; len < 3000; len += 1 + len / 10) {
        struct buf text = { 0 }, slowly = { 0 }, stepped = { 0 }, at_once = { 0 };
        make_text(&draws, len, &text);
        escape_slowly(buf_slice(&text), &slowly);
        escape_in_steps(&draws, buf_slice(&text), &stepped);
        buf_add_escaped(&at_once, buf_slice(&text));
        assert_true(slice_equal(buf_slice(&slowly), buf_slice(&stepped)));
        assert_true(slice_equal(buf_slice(&slowly), buf_slice(&at_once)));
        assert_int_equal(escape_len(buf_slice(&text)), slowly.len);
        buf_finish(&text);
        buf_finish(&slowly);
        buf_finish(&stepped);
        buf_finish(&at_once);
    }
}

/* There are more quotes than the bytes of a word can count. */
static void many_quotes_are_all_measured(void **state)
{
    char quotes[5001];
    (void)state;
    memset(quotes, '"', sizeof(quotes));
    for (size_t len = 0; len <= sizeof(quotes); len += 97)
        assert_int_equal(escape_len((struct slice){ quotes, len }), 2 * len);
    quotes[3000] = '\x01';
    assert_int_equal(escape_len((struct slice){ quotes, 5001 }), 2 * 5000 + 6);
}

/* Returns the place, or the beginning of the character that contains it. */
static uint32_t whole(const struct bytes *text, uint32_t at)
{
    while (at && at < text->len && ((unsigned char)text->data[at] & 0xC0) == 0x80)
        at--;
    return at;
}

/* Measures parts in any order, whether the rest of the bytes is long or short. */
static void parts_of_measured_bytes_are_measured(void **state)
{
    struct draws draws = { 13 };
    struct buf text = { 0 };
    (void)state;
    make_text(&draws, 2000, &text);
    for (size_t i = 0; i < 200; i++) {
        struct bytes *owner = bytes_create(buf_slice(&text));
        for (size_t asked = 0; asked < 3; asked++) {
            uint32_t from = draw(&draws, owner->len), len = draw(&draws, owner->len - from);
            if (asked == i % 3)
                from = 0, len = owner->len;
            uint32_t end = whole(owner, from + len);
            from = whole(owner, from);
            struct slice part = { owner->data + from, end > from ? end - from : 0 };
            assert_int_equal(escape_len_within(owner, part), escape_len(part));
        }
        assert_int_equal(owner->escaped, escape_len(bytes_slice(owner)));
        bytes_unref(owner);
    }
    buf_finish(&text);
}

static size_t first_width(struct slice text)
{
    return utf8_is_half(text.ptr, text.len) ? 6 : escape_len((struct slice){ text.ptr, 1 });
}

static void every_offset_in_escaped_text_is_found(void **state)
{
    struct draws draws = { 11 };
    struct buf text = { 0 };
    (void)state;
    make_text(&draws, 300, &text);
    struct slice all = buf_slice(&text);
    for (size_t len = 0; len <= escape_len(all); len++) {
        size_t within, at = escape_find(all, len, &within);
        assert_int_equal(escape_len((struct slice){ all.ptr, at }) + within, len);
        if (at < all.len)
            assert_true(within < first_width(slice_from(all, at)));
        else
            assert_int_equal(within, 0);
    }
    buf_finish(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(escaping_in_steps_of_any_size_gives_the_same_bytes),
        cmocka_unit_test(many_quotes_are_all_measured),
        cmocka_unit_test(parts_of_measured_bytes_are_measured),
        cmocka_unit_test(every_offset_in_escaped_text_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
