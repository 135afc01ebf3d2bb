/* A rope reads the same as a plain copy, in stretches of any size. */
#include "tests/support/world/unit.h"

#include "base/rope.h"
#include "tests/support/world/sim.h"

static struct bytes *make_value(struct draws *draws)
{
    static const char alphabet[] = "abcdefgh\"\\\n\r\x01\xc3\xa9";
    size_t len = draw(draws, 2) ? 10 : ROPE_LONG + draw(draws, 1000);
    struct bytes *value = bytes_create_empty(len);
    for (size_t i = 0; i < len; i++)
        value->data[i] = alphabet[draw(draws, sizeof(alphabet) - 1)];
    return value;
}

/* Makes the same calls on the buffer of a rope or on a plain one. */
static void write_some(struct buf *out, struct bytes *const *values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        buf_print(out, "{%zu:", i);
        if (i % 2)
            rope_add(out, values[i], bytes_slice(values[i]));
        else
            rope_add_json(out, values[i], bytes_slice(values[i]));
    }
}

/* Reads in stretches of any size, like a socket that accepts less than it was given. */
static void read_all(struct draws *draws, const struct bytes *bytes, struct buf *out)
{
    static char room[4096];
    struct rope_place place = { 0 };
    if (!bytes_are_parts(bytes)) {
        buf_add(out, bytes_slice(bytes));
        return;
    }
    while (!rope_is_read(bytes, &place)) {
        struct rope_place before = place;
        size_t size = ROPE_ROOM_LEAST + draw(draws, sizeof(room) - ROPE_ROOM_LEAST + 1);
        struct slice text = rope_read(bytes, &place, room, size);
        assert_true(text.len > 0);
        if (draw(draws, 2)) {
            text.len = 1 + draw(draws, (uint32_t)text.len);
            place = before;
            rope_skip(bytes, &place, text.len);
        }
        buf_add(out, text);
    }
}

enum { VALUES = 5 };

struct scene {
    struct draws draws;
    struct bytes *values[VALUES];
    struct rope rope;
    struct buf plain;
};

static void open_scene(struct scene *scene, uint64_t seed)
{
    *scene = (struct scene){ .draws = { seed } };
    rope_clear(&scene->rope);
    for (size_t i = 0; i < VALUES; i++)
        scene->values[i] = make_value(&scene->draws);
    write_some(&scene->rope.text, scene->values, VALUES);
    write_some(&scene->plain, scene->values, VALUES);
}

static void close_scene(struct scene *scene)
{
    rope_finish(&scene->rope);
    buf_finish(&scene->plain);
    for (size_t i = 0; i < VALUES; i++) {
        assert_int_equal(scene->values[i]->refs, 1);
        bytes_unref(scene->values[i]);
    }
}

/* Takes ownership of the reference. */
static void assert_reads_as(struct scene *scene, struct bytes *bytes, struct slice expected)
{
    struct buf got = { 0 };
    assert_int_equal(bytes->len, expected.len);
    read_all(&scene->draws, bytes, &got);
    assert_true(slice_equal(buf_slice(&got), expected));
    buf_finish(&got);
    bytes_unref(bytes);
}

static void rope_reads_as_it_was_written(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 12; seed++) {
        struct scene scene;
        struct buf expected = { 0 };
        open_scene(&scene, seed);
        assert_int_equal(rope_len(&scene.rope), scene.plain.len);
        buf_print(&expected, "<%.*s>", SLICE_ARG(buf_slice(&scene.plain)));
        struct bytes *joined = rope_join(SLICE("<"), &scene.rope, SLICE(">"));
        assert_reads_as(&scene, joined, buf_slice(&expected));
        buf_finish(&expected);
        close_scene(&scene);
    }
}

static void nested_rope_is_flattened(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 12; seed++) {
        struct scene scene;
        struct rope outer = { 0 };
        struct buf expected = { 0 };
        open_scene(&scene, seed);
        rope_clear(&outer);
        buf_add_text(&outer.text, "[");
        rope_add_rope(&outer.text, &scene.rope);
        struct bytes *joined = rope_join(SLICE("<"), &outer, SLICE(">>"));
        rope_add_inner(&outer.text, joined, 2, 2);
        buf_print(&expected, "[%.*s%.*s", SLICE_ARG(buf_slice(&scene.plain)),
                  SLICE_ARG(buf_slice(&scene.plain)));
        assert_reads_as(&scene, rope_join(SLICE(""), &outer, SLICE("")),
                        buf_slice(&expected));
        bytes_unref(joined);
        rope_finish(&outer);
        buf_finish(&expected);
        close_scene(&scene);
    }
}

static void rope_can_be_quoted_as_json(void **state)
{
    struct bytes *value = bytes_create_empty(ROPE_LONG);
    struct rope inner = { 0 }, outer = { 0 };
    struct buf plain = { 0 }, quoted = { 0 };
    struct scene scene = { .draws = { 3 } };
    (void)state;
    memset(value->data, '"', value->len);
    rope_clear(&inner);
    rope_clear(&outer);
    buf_add_text(&inner.text, "{\"a\":");
    rope_add(&inner.text, value, bytes_slice(value));
    buf_add_text(&inner.text, "\n}");
    buf_print(&plain, "{\"a\":%s\n}", value->data);
    rope_add_json_rope(&outer.text, &inner);
    buf_add_json(&quoted, buf_slice(&plain));
    assert_int_equal(outer.text.len, sizeof("\"{\\\"a\\\":\\n}\"") - 1); /* not copied */
    assert_reads_as(&scene, rope_join(SLICE(""), &outer, SLICE("")), buf_slice(&quoted));
    rope_finish(&inner);
    rope_finish(&outer);
    buf_finish(&plain);
    buf_finish(&quoted);
    assert_int_equal(value->refs, 1);
    bytes_unref(value);
}

static void replace_breaks(char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (strchr("\r\n", text[i]))
            text[i] = ' ';
}

static void rope_can_be_made_one_line(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 12; seed++) {
        struct scene scene;
        struct rope outer = { 0 };
        struct buf expected = { 0 }, inner = { 0 };
        open_scene(&scene, seed);
        buf_add_text(&scene.rope.text, "\r\n}");
        buf_add_text(&scene.plain, "\r\n}");
        replace_breaks(scene.plain.ptr, scene.plain.len);
        buf_print(&expected, "a\n%.*s\n", SLICE_ARG(buf_slice(&scene.plain)));
        struct bytes *line = rope_join_line(SLICE("a\n"), &scene.rope, SLICE("\n"));
        rope_add_inner(&inner, line, 2, 1);
        assert_true(slice_equal(buf_slice(&inner), buf_slice(&scene.plain)));
        rope_clear(&outer);
        rope_add_inner(&outer.text, line, 0, 0);
        assert_reads_as(&scene, rope_join(SLICE(""), &outer, SLICE("")),
                        buf_slice(&expected));
        assert_reads_as(&scene, line, buf_slice(&expected));
        rope_finish(&outer);
        buf_finish(&inner);
        buf_finish(&expected);
        close_scene(&scene);
    }
}

static void cutting_a_rope_restores_its_earlier_end(void **state)
{
    struct scene scene;
    (void)state;
    open_scene(&scene, 5);
    struct rope_end end = rope_end(&scene.rope);
    size_t before = rope_len(&scene.rope);
    write_some(&scene.rope.text, scene.values, VALUES);
    assert_true(rope_len(&scene.rope) > before);
    rope_cut(&scene.rope, end);
    assert_int_equal(rope_len(&scene.rope), before);
    assert_reads_as(&scene, rope_join(SLICE(""), &scene.rope, SLICE("")),
                    buf_slice(&scene.plain));
    close_scene(&scene);
}

static void rope_of_short_values_becomes_plain_bytes(void **state)
{
    struct rope rope = { 0 };
    struct bytes *value = bytes_create(SLICE("short"));
    (void)state;
    rope_clear(&rope);
    rope_add_json(&rope.text, value, bytes_slice(value));
    struct bytes *joined = rope_join(SLICE("<"), &rope, SLICE(">"));
    assert_false(bytes_are_parts(joined));
    assert_string_equal(joined->data, "<\"short\">");
    bytes_unref(joined);
    bytes_unref(value);
    rope_finish(&rope);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rope_reads_as_it_was_written),
        cmocka_unit_test(nested_rope_is_flattened),
        cmocka_unit_test(rope_can_be_quoted_as_json),
        cmocka_unit_test(rope_can_be_made_one_line),
        cmocka_unit_test(cutting_a_rope_restores_its_earlier_end),
        cmocka_unit_test(rope_of_short_values_becomes_plain_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
