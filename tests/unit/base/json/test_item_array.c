/* The items of a batch are read one after the other, however its body is cut. */
#include "tests/support/world/unit.h"

#include "base/json/item_array.h"

/* Collects the tasks of the items, each followed by a semicolon. */
struct reader {
    struct item_array array;
    struct failure why;
    struct buf tasks;
};

static enum err note_task(struct item_array *array)
{
    struct reader *reader = (struct reader *)(void *)array; /* array is its first member */
    buf_add(&reader->tasks, envelope_get(&array->item, "task"));
    buf_add_char(&reader->tasks, ';');
    return OK;
}

static enum err read_body(struct reader *reader, struct slice text, size_t size)
{
    enum err err = OK;
    *reader = (struct reader){ 0 };
    reader->array.on_item = note_task;
    reader->array.why = &reader->why;
    while (text.len && !err) {
        size_t len = text.len < size ? text.len : size;
        err = item_array_feed(&reader->array, (struct slice){ text.ptr, len });
        text = slice_from(text, len);
    }
    return err ? err : item_array_close(&reader->array);
}

static void done(struct reader *reader)
{
    item_array_finish(&reader->array);
    buf_finish(&reader->tasks);
}

static void items_are_found_however_the_body_is_cut(void **state)
{
    (void)state;
    static const struct {
        const char *body, *tasks;
        size_t count;
    } cases[] = {
        { "{\"items\":[]}", "", 0 },
        { " { \"items\" : [ ] } ", "", 0 },
        { "{\"items\":[{\"task\":1}]}", "1;", 1 },
        { "{\"items\":[ {\"task\":1} , {\"task\":[2,{\"a\":[]}]} ],\"x\":[[1],2]}",
          "1;[2,{\"a\":[]}];", 2 },
        { "{\"x\":[\"items\",[{}]],\"items\":[{\"task\":\"],}\\\"\\\\\"}]}",
          "\"],}\\\"\\\\\";", 1 },
        { "{\"x\":\"items:[\",\"items\":[{\"items\":[{\"task\":9}],\"task\":1},{}]}", "1;;",
          2 },
        { "{\"x\":{\"items\":[{\"task\":9}]},\"\\u0069tems\":[{\"task\":1}]}", "1;", 1 },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct slice body = slice_of(cases[i].body);
        for (size_t size = 1; size <= body.len; size++) {
            struct reader reader;
            if (read_body(&reader, body, size))
                fail_msg("%s: %s", cases[i].body, reader.why.text);
            assert_true(slice_is(buf_slice(&reader.tasks), cases[i].tasks));
            assert_int_equal(reader.array.count, cases[i].count);
            done(&reader);
        }
    }
}

static void the_rest_of_the_body_is_an_object_of_its_own(void **state)
{
    (void)state;
    struct reader reader;
    struct slice body = SLICE("{\"a\":1,\"items\":[{\"parent\":2},{}],\"parent\":\"p\"}");
    assert_int_equal(read_body(&reader, body, 5), OK);
    assert_true(slice_is(envelope_get(&reader.array.outer, "parent"), "\"p\""));
    assert_true(slice_is(envelope_get(&reader.array.outer, "items"), "[]"));
    done(&reader);
}

static void invalid_batch_is_rejected_however_it_is_cut(void **state)
{
    (void)state;
    static const struct {
        const char *body, *says;
    } cases[] = {
        { "", "empty" },
        { "[]", "must be a JSON object" },
        { "{}", "Expected array at \"items\"" },
        { "{\"items\":{\"a\":[1]}}", "Expected array at \"items\"" },
        { "{\"items\":[{}", "too early" },
        { "{\"items\":[{}]", "too early" },
        { "{\"items\":[,]}", "Invalid JSON" },
        { "{\"items\":[{},]}", "Invalid JSON" },
        { "{\"items\":[{}{}]}", "Invalid JSON" },
        { "{\"items\":[{]}", "items[0]" },
        { "{\"items\":[}]}", "Invalid JSON" },
        { "{\"items\":[{}]}]", "Invalid JSON" },
        { "{\"items\":[1]}", "must be a JSON object (items[0])" },
        { "{\"items\":[{},{\"task\":1,\"task\":2}]}", "twice (items[1])" },
        { "{\"items\":[{}],\"items\":[{}]}", "twice" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct slice body = slice_of(cases[i].body);
        for (size_t size = 1; size <= body.len + 1; size++) {
            struct reader reader;
            if (read_body(&reader, body, size) != ERR_INVALID ||
                !strstr(reader.why.text, cases[i].says))
                fail_msg("%s by %zu: %s", cases[i].body, size, reader.why.text);
            done(&reader);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(items_are_found_however_the_body_is_cut),
        cmocka_unit_test(the_rest_of_the_body_is_an_object_of_its_own),
        cmocka_unit_test(invalid_batch_is_rejected_however_it_is_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
