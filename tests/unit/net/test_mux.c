/* Messages of a shared connection: what is written is read, in pieces of any length, and
 * nothing malformed is. */
#include "tests/support/world/unit.h"

#include "net/mux.h"

static void add_message(struct buf *out, const struct buf *items)
{
    unsigned char head[MUX_HEAD_LEN];
    mux_write_head(items->len, head);
    buf_add(out, (struct slice){ (const char *)head, sizeof(head) });
    buf_add(out, buf_slice(items));
}

static const struct mux_item items[] = {
    { MUX_CALL, 7, 0, SLICE("::1 --"), SLICE("GET / HTTP/1.1\r\n\r\n") },
    { MUX_LEFT, 0xFFFFFFFF, 0, SLICE(""), SLICE("") },
    { MUX_ANSWER, 1, 503, SLICE(""), SLICE("body") },
    { MUX_LOST, 0, 0, SLICE(""), SLICE("") },
};

enum { ITEMS = sizeof(items) / sizeof(items[0]) };

static void expect_item(struct slice *message, const struct mux_item *expected)
{
    struct mux_item item;
    assert_true(mux_take(message, &item));
    assert_int_equal(item.kind, expected->kind);
    assert_int_equal(item.id, expected->id);
    assert_int_equal(item.status, expected->status);
    assert_true(slice_equal(item.first, expected->first));
    assert_true(slice_equal(item.second, expected->second));
}

/* Returns the number of messages read, each of which has all items. */
static size_t read_all(struct mux_reader *reader, struct slice bytes)
{
    struct slice message;
    size_t count = 0;
    while (mux_read(reader, &bytes, &message) == MUX_MESSAGE) {
        for (size_t i = 0; i < ITEMS; i++)
            expect_item(&message, &items[i]);
        assert_int_equal(message.len, 0);
        count++;
    }
    assert_int_equal(bytes.len, 0);
    return count;
}

static void messages_are_read_from_pieces_of_any_length(void **state)
{
    struct buf content = { 0 }, all = { 0 };
    (void)state;
    for (size_t i = 0; i < ITEMS; i++)
        mux_add(&content, &items[i]);
    for (int i = 0; i < 3; i++)
        add_message(&all, &content);
    for (size_t len = 1; len <= all.len; len++) {
        struct mux_reader reader = { 0 };
        size_t count = 0;
        for (size_t at = 0; at < all.len; at += len) {
            size_t left = all.len - at;
            count +=
                read_all(&reader, (struct slice){ all.ptr + at, left < len ? left : len });
        }
        assert_int_equal(count, 3);
        mux_reader_finish(&reader);
    }
    buf_finish(&content);
    buf_finish(&all);
}

static void a_text_may_be_written_in_place(void **state)
{
    struct buf made = { 0 }, added = { 0 };
    (void)state;
    buf_add_text(&made, "before");
    size_t begin = mux_begin(&made, &items[0]);
    buf_add(&made, items[0].second);
    mux_end(&made, begin);
    mux_add(&added, &items[0]);
    assert_true(slice_equal(slice_from(buf_slice(&made), begin), buf_slice(&added)));
    buf_finish(&made);
    buf_finish(&added);
}

static void truncated_and_unknown_items_are_refused(void **state)
{
    struct buf one = { 0 };
    struct mux_item item;
    (void)state;
    mux_add(&one, &items[0]);
    for (size_t len = 0; len < one.len; len++) {
        struct slice part = { one.ptr, len };
        assert_false(mux_take(&part, &item));
    }
    for (int kind = 0; kind < 256; kind++) {
        struct slice whole = buf_slice(&one);
        one.ptr[0] = (char)kind;
        assert_int_equal(mux_take(&whole, &item), kind >= MUX_CALL && kind <= MUX_ALONE);
    }
    buf_finish(&one);
}

static void a_message_that_is_too_long_is_refused(void **state)
{
    static const size_t lengths[] = { MUX_MESSAGE_MAX + 1, UINT32_MAX, MUX_CALLS_MAX + 1 };
    static const size_t mosts[] = { 0, 0, MUX_CALLS_MAX };
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct mux_reader reader = { .most = mosts[i] };
        unsigned char head[MUX_HEAD_LEN];
        struct slice message, first = { (const char *)head, 1 },
                              rest = { (const char *)head + 1, sizeof(head) - 1 };
        mux_write_head(lengths[i], head);
        assert_int_equal(mux_read(&reader, &first, &message), MUX_MORE);
        assert_int_equal(mux_read(&reader, &rest, &message), MUX_FAULT);
        mux_reader_finish(&reader);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_are_read_from_pieces_of_any_length),
        cmocka_unit_test(a_text_may_be_written_in_place),
        cmocka_unit_test(truncated_and_unknown_items_are_refused),
        cmocka_unit_test(a_message_that_is_too_long_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
