/* Ends and depths of containers, compared with a reader that takes one character at a
 * time. */
#include "tests/support/world/unit.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/json/brackets.h"
#include "base/json/scan.h"

enum { TEXTS = 3000, DEPTH = 12 };

static unsigned chance(unsigned of)
{
    return (unsigned)(rand() % (int)of); /* NOLINT: repeatable */
}

/* Adds a string that contains quotes, backslashes and brackets, of any length around a
 * block. */
static void add_string(struct buf *out)
{
    static const char *const parts[] = { "[",    "}",        "{\\\"", "\\\\", "a",
                                         "\\\"", "\\\\\\\"", "]]]",   ":,",   "\xC3\xA9" };
    buf_add_char(out, '"');
    for (unsigned left = chance(8) ? chance(6) : chance(70); left; left--)
        buf_add_text(out, parts[chance(sizeof(parts) / sizeof(parts[0]))]);
    buf_add_char(out, '"');
}

static void add_value(struct buf *out, unsigned depth)
{
    unsigned kind = depth ? chance(5) : chance(2);
    if (kind < 2) {
        kind ? add_string(out) : buf_add_text(out, "12345");
        return;
    }
    bool is_object = kind == 2;
    buf_add_char(out, is_object ? '{' : '[');
    for (unsigned i = 0, count = chance(5); i < count; i++) {
        if (i)
            buf_add_text(out, ", ");
        if (is_object) {
            add_string(out);
            buf_add_char(out, ':');
        }
        add_value(out, depth - 1);
    }
    buf_add_char(out, is_object ? '}' : ']');
}

struct plain {
    size_t end;     /* after the bracket that closes all; the length if none does */
    size_t deepest; /* the greatest nesting depth */
};

static struct plain read_plainly(struct slice text, size_t depth)
{
    struct plain plain = { text.len, depth };
    bool in_string = false;
    for (size_t at = 0; at < text.len; at++) {
        char c = text.ptr[at];
        if (in_string && c == '\\')
            at++;
        else if (c == '"')
            in_string = !in_string;
        else if (!in_string && (c == '{' || c == '['))
            depth++;
        else if (!in_string && (c == '}' || c == ']') && --depth == 0 &&
                 plain.end == text.len)
            plain.end = at + 1;
        plain.deepest = depth > plain.deepest ? depth : plain.deepest;
    }
    return plain;
}

static void end_and_depth_match_a_plain_reader(void **state)
{
    (void)state;
    size_t longest = 0;
    for (int i = 0; i < TEXTS; i++) {
        struct buf text = { 0 };
        buf_add_char(&text, '[');
        add_value(&text, DEPTH);
        buf_add_char(&text, ']');
        assert_true(scan_is_json(buf_slice(&text)));
        longest = text.len > longest ? text.len : longest;

        size_t depth = read_plainly(buf_slice(&text), 0).deepest;
        assert_false(brackets_deeper_than(buf_slice(&text), depth));
        assert_true(brackets_deeper_than(buf_slice(&text), depth - 1));
        size_t whole = text.len;
        buf_add_text(&text, ",[\"]\",{}]]]");
        assert_int_equal(brackets_until_closed(slice_from(buf_slice(&text), 1), 1),
                         whole - 1);
        for (size_t open = 1; open <= 3; open++) {
            struct slice rest = slice_from(buf_slice(&text), whole);
            assert_int_equal(brackets_until_closed(rest, open),
                             read_plainly(rest, open).end);
        }
        buf_finish(&text);
    }
    assert_true(longest > 1000);
}

/* A block may end between a backslash and the escaped byte, in a string, or at a
 * bracket. */
static void brackets_are_found_wherever_a_block_ends(void **state)
{
    (void)state;
    static const char tail[] = "\\\\\\\"]\"],[\"\\\\\"]]x";
    for (size_t before = 0; before < 200; before++) {
        struct buf text = { 0 };
        buf_add_text(&text, "[[\"");
        for (size_t i = 0; i < before; i++)
            buf_add_char(&text, i % 3 ? 'a' : '}');
        buf_add_text(&text, tail);
        struct slice inner = slice_from(buf_slice(&text), 1);
        assert_int_equal(brackets_until_closed(inner, 1), inner.len - 1);
        assert_int_equal(brackets_until_closed(inner, 2), inner.len);
        inner.len -= 2; /* without its last bracket */
        assert_int_equal(brackets_until_closed(inner, 1), inner.len);
        buf_finish(&text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(end_and_depth_match_a_plain_reader),
        cmocka_unit_test(brackets_are_found_wherever_a_block_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
