/* A row with long values has the same bytes, and none of them are copied to make it. */
#include "tests/support/world/unit.h"

#include "core/wire/render.h"

static struct bytes *long_text(const char *before, const char *part, const char *behind)
{
    struct buf all = { 0 };
    buf_add_text(&all, before);
    while (all.len < ROPE_LONG + 1000)
        buf_add_text(&all, part);
    buf_add_text(&all, behind);
    struct bytes *bytes = buf_to_bytes(&all);
    buf_finish(&all);
    return bytes;
}

static struct run run_with_long_values(bool payload_is_text)
{
    struct run run = { .id = "run_1", .version = 1, .task = bytes_create(SLICE("hello")) };
    struct run_rare *rare = run_rare_edit(&run);
    run.status = RUN_COMPLETED;
    run.payload = long_text("\"", "\\\"\\n\xc3\xa9", "\"");
    if (payload_is_text)
        rare->payload_type = bytes_create(SLICE("text/plain"));
    run.output = long_text(" {\"json\":[\"", "x\\\"", "\"],\"meta\":{}} ");
    rare->output_type = bytes_create(SLICE("application/super+json"));
    run.metadata = long_text("{\"a\":\"", "b\\\\", "\"}");
    run.error = long_text("{\"type\":\"BUILT_IN_ERROR\",\"stackTrace\":\"", "at\\n", "\"}");
    return run;
}

/* Reads the rope through a buffer of this size for escaped text. */
static void read_rope(const struct rope *rope, size_t size, struct buf *out)
{
    struct bytes *bytes = rope_join((struct slice){ 0 }, rope, (struct slice){ 0 });
    struct rope_place place = { 0 };
    char room[1000];
    assert_true(bytes_are_parts(bytes));
    while (!rope_is_read(bytes, &place))
        buf_add(out, rope_read(bytes, &place, room, size));
    assert_int_equal(bytes->len, out->len);
    bytes_unref(bytes);
}

/* The same row; its long values are neither copied nor escaped when it is made. */
static void long_values_are_not_copied(void **state)
{
    static const enum encoding encodings[] = { ENCODING_JSON, ENCODING_MSGPACK,
                                               ENCODING_SHAPE };
    (void)state;
    for (unsigned i = 0; i < 6; i++) {
        struct view view = { .encoding = encodings[i / 2], .fields = FIELDS_ALL };
        struct run run = run_with_long_values(i % 2);
        struct buf plain = { 0 }, read = { 0 };
        struct rope rope = { 0 };
        rope_clear(&rope);
        render_whole(&view, &run, &plain);
        render_whole(&view, &run, &rope.text);
        assert_int_equal(rope.count, 4);
        assert_true(rope.text.len < 4096);
        read_rope(&rope, ROPE_ROOM_LEAST + 100 * i, &read);
        assert_true(slice_equal(buf_slice(&plain), buf_slice(&read)));
        rope_finish(&rope);
        buf_finish(&plain);
        buf_finish(&read);
        run_finish(&run);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(long_values_are_not_copied),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
