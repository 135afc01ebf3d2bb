/* A body that is read while it arrives, however it is cut, with long strings set aside. */
#include "tests/support/world/unit.h"

#include "api/request/body_fields.h"
#include "base/json/scan.h"

/* Longer than strings that stay in the object. */
enum { LONG = 40 * 1024 };

typedef enum err take_fn(struct api_call *call, struct slice piece);

/* Feeds the body in pieces of the given size. The caller frees the result. */
static struct body_fields *feed(take_fn *take, struct slice body, size_t size,
                                struct slice *object)
{
    struct api_call call = { 0 };
    struct body_fields *fields = NULL;
    while (body.len) {
        struct slice piece = { body.ptr, body.len < size ? body.len : size };
        assert_int_equal(take(&call, piece), OK);
        body = slice_from(body, piece.len);
    }
    assert_int_equal(body_fields_end(&call, &fields, object), OK);
    assert_null(call.state);
    assert_null(call.on_gone);
    return fields;
}

static void add_times(struct buf *out, const char *text, size_t bytes)
{
    for (size_t begin = out->len; out->len - begin < bytes;)
        buf_add_text(out, text);
}

static struct slice member(struct slice object, const char *name)
{
    return scan_member(scan_member(object, "completion"), name);
}

static void long_string_reads_as_if_it_came_in_one_piece(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "plain",
        "\\\"\\\\\\/\\b\\f\\n\\r\\t",
        "\\u00e9\\u0000\\uffff",
        "\\ud83d\\ude00x\\uD83D\\uDE00",
        "\xc3\xa9\xf0\x9f\x98\x80",
        "\\\\\\\"",
    };
    static const size_t sizes[] = { 1, 2, 3, 7, 4096, LONG, 1000000 };
    for (size_t t = 0; t < sizeof(texts) / sizeof(texts[0]); t++) {
        struct buf body = { 0 }, expected = { 0 };
        buf_add_text(&body, "{\"completion\":{\"ok\":true,\"output\": \"");
        add_times(&body, texts[t], LONG);
        buf_add_text(&body, "\" ,\"outputType\":\"a\"}}");
        scan_string(member(buf_slice(&body), "output"), &expected);
        for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
            struct slice object;
            struct buf output = { 0 };
            struct body_fields *fields =
                feed(body_fields_take_long, buf_slice(&body), sizes[s], &object);
            assert_true(object.len < 200); /* it is not in the object */
            assert_true(slice_is(member(object, "outputType"), "\"a\""));
            assert_true(body_fields_string(fields, member(object, "output"), &output));
            assert_true(slice_equal(buf_slice(&output), buf_slice(&expected)));
            buf_finish(&output);
            body_fields_free(fields);
        }
        buf_finish(&body);
        buf_finish(&expected);
    }
}

static void long_string_is_marked_as_json_or_not(void **state)
{
    (void)state;
    static const struct {
        const char *begin, *end;
        enum bytes_json json;
    } cases[] = {
        { "[\\\"", "\\\"]", BYTES_JSON },
        { "[\\\"", "\\\"", BYTES_NO_JSON },
        { "", "", BYTES_NO_JSON },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (size_t size = 1; size < 100000; size = size * 30 + 1) {
            struct buf body = { 0 };
            struct slice object;
            buf_print(&body, "{\"completion\":{\"output\":\"%s", cases[i].begin);
            add_times(&body, "\\u0041", 6 * LONG);
            buf_print(&body, "%s\"}}", cases[i].end);
            struct body_fields *fields =
                feed(body_fields_take_long, buf_slice(&body), size, &object);
            struct bytes *output = body_fields_bytes(fields, member(object, "output"));
            assert_int_equal(output->json, cases[i].json);
            assert_int_equal(scan_is_json(bytes_slice(output)),
                             cases[i].json == BYTES_JSON);
            assert_null(body_fields_bytes(fields, scan_member(object, "completion")));
            bytes_unref(output);
            body_fields_free(fields);
            buf_finish(&body);
        }
}

static void short_and_deep_strings_stay_in_the_object(void **state)
{
    (void)state;
    struct buf body = { 0 };
    struct slice object;
    buf_add_text(&body,
                 "{\"completion\":{\"output\":\"{\\\"a\\\":1}\",\"error\":{\"m\":\"");
    add_times(&body, "deep ", LONG);
    buf_add_text(&body, "\"}}}");
    struct body_fields *fields =
        feed(body_fields_take_long, buf_slice(&body), 1000, &object);
    assert_true(slice_equal(object, buf_slice(&body)));
    struct buf output = { 0 };
    assert_true(body_fields_string(fields, member(object, "output"), &output));
    assert_true(slice_is(buf_slice(&output), "{\"a\":1}"));
    assert_false(body_fields_string(fields, member(object, "error"), &output));
    buf_finish(&output);
    body_fields_free(fields);
    buf_finish(&body);
}

static void several_long_strings_are_distinguished(void **state)
{
    (void)state;
    struct buf body = { 0 }, text = { 0 };
    struct slice object;
    buf_add_text(&body, "{\"completion\":{\"a\":\"");
    add_times(&body, "a", LONG);
    buf_add_text(&body, "\",\"b\":\"");
    add_times(&body, "b", LONG);
    buf_add_text(&body, "\"}}");
    struct body_fields *fields =
        feed(body_fields_take_long, buf_slice(&body), 65536, &object);
    for (const char *name = "ba"; *name; name++) {
        const char key[] = { *name, '\0' };
        assert_true(body_fields_string(fields, member(object, key), &text));
        assert_int_equal(text.len, LONG);
        assert_int_equal(text.ptr[0], *name);
        assert_int_equal(text.ptr[LONG - 1], *name);
        buf_finish(&text);
        text = (struct buf){ 0 };
    }
    body_fields_free(fields);
    buf_finish(&body);
}

/* It is rejected on arrival, not only at the end, when all of it is in memory. */
static void too_large_rest_of_a_body_is_rejected_on_arrival(void **state)
{
    (void)state;
    struct buf body = { 0 }, some = { 0 };
    struct api_call call = { 0 };
    enum err refused;
    buf_add_text(&body, "{\"output\":\"");
    add_times(&body, "x", 2 * BODY_FIELDS_BESIDE_MAX);
    buf_add_text(&body, "\",\"more\":[1");
    assert_int_equal(body_fields_take_long(&call, buf_slice(&body)), OK);
    add_times(&some, ",1", 1000);
    size_t came = 0;
    while (!(refused = body_fields_take_long(&call, buf_slice(&some))) && came < body.len)
        came += some.len;
    assert_int_equal(refused, ERR_TOO_LARGE);
    assert_in_range(came, BODY_FIELDS_BESIDE_MAX - 1100, BODY_FIELDS_BESIDE_MAX);
    assert_string_equal(call.why.text,
                        "The body is too large (max 1 MiB without its output)");
    assert_null(call.state);
    assert_null(call.on_gone);
    buf_finish(&body);
    buf_finish(&some);
}

static enum err take_any(struct api_call *call, struct slice piece)
{
    body_fields_take_any(call, piece);
    return OK;
}

static void body_that_is_never_rejected_sets_deep_strings_aside(void **state)
{
    (void)state;
    static const size_t sizes[] = { 1, 1000, 65536 };
    struct buf body = { 0 };
    buf_add_text(&body, "{\"completion\":{\"error\":{\"causes\":[{\"message\":\"");
    add_times(&body, "\\u00e9\\n", 4 * (size_t)LONG);
    buf_add_text(&body, "\"}],\"more\":1}}}");
    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
        struct slice object, cause;
        struct buf text = { 0 };
        size_t len = 0;
        struct body_fields *fields = feed(take_any, buf_slice(&body), sizes[s], &object);
        struct slice error = member(object, "error");
        assert_true(object.len < 200);
        assert_true(body_fields_has_mark(error));
        assert_false(body_fields_has_mark(scan_member(error, "more")));
        struct scan_members causes = scan_members(scan_member(error, "causes"));
        assert_true(scan_next_element(&causes, &cause));
        cause = scan_member(cause, "message");
        assert_false(body_fields_is_cut(fields, cause, &len));
        assert_true(body_fields_begin(fields, cause, 4, &text, &len));
        assert_int_equal(len, 3 * (4 * (size_t)LONG / 8));
        assert_true(slice_is(buf_slice(&text), "\xc3\xa9\n"));
        buf_finish(&text);
        body_fields_free(fields);
    }
    buf_finish(&body);
}

static void too_long_string_keeps_its_beginning_and_length(void **state)
{
    (void)state;
    const size_t len = BODY_FIELDS_ASIDE_MAX + 3000;
    struct buf body = { 0 }, text = { 0 };
    struct slice object;
    size_t found = 0;
    buf_add_text(&body, "{\"completion\":{\"output\":\"x");
    add_times(&body, "\xf0\x9f\x98\x80", len);
    buf_add_text(&body, "\",\"other\":\"");
    add_times(&body, "y", LONG);
    buf_add_text(&body, "\",\"ok\":true}}");
    struct body_fields *fields = feed(take_any, buf_slice(&body), 65536, &object);
    struct slice output = member(object, "output"), other = member(object, "other");
    assert_int_equal(scan_type(member(object, "ok")), SCAN_TRUE);
    assert_true(body_fields_is_cut(fields, output, &found));
    assert_int_equal(found, len + 1);
    assert_true(body_fields_begin(fields, output, SIZE_MAX, &text, &found));
    assert_int_equal(text.len % 4, 1); /* no half of a character */
    assert_in_range(text.len, BODY_FIELDS_CUT_MAX - 8, BODY_FIELDS_CUT_MAX);
    buf_clear(&text);
    assert_true(body_fields_begin(fields, other, 10, &text, &found));
    assert_int_equal(text.len, 10); /* the limit leaves space for others again */
    assert_int_equal(found, LONG);
    body_fields_free(fields);
    buf_finish(&body);
    buf_finish(&text);
}

/* Feeds `count` strings of `len` bytes; returns the most memory that was counted. */
static size_t feed_strings(struct api_call *call, size_t count, size_t len)
{
    struct buf element = { 0 };
    size_t most = 0;
    buf_add_char(&element, '"');
    add_times(&element, "a", len);
    buf_add_text(&element, "\",");
    for (size_t i = 0; i < count; i++) {
        body_fields_take_any(call, buf_slice(&element));
        most = body_fields_size(call) > most ? body_fields_size(call) : most;
    }
    buf_finish(&element);
    return most;
}

/* Strings that are no longer kept take no memory, and all memory is counted. */
static void memory_of_many_long_strings_is_counted(void **state)
{
    (void)state;
    struct api_call call = { 0 };
    body_fields_take_any(&call, SLICE("{\"completion\":{\"error\":{\"a\":["));
    size_t most = feed_strings(&call, 500, LONG);
    assert_in_range(most, BODY_FIELDS_ASIDE_MAX, 2 * BODY_FIELDS_ASIDE_MAX + LONG);
    size_t later = feed_strings(&call, 2000, LONG);
    assert_in_range(later, most, most + 1000 * 1000); /* 80 MB if each kept its LONG */
    body_fields_drop(&call);
}

/* If the body trickles in after that, only the beginning is held. */
static void truncated_string_frees_its_memory_at_once(void **state)
{
    (void)state;
    struct api_call call = { 0 };
    struct buf piece = { 0 };
    add_times(&piece, "a", (size_t)64 * 1024);
    body_fields_take_any(&call, SLICE("{\"completion\":{\"output\":\""));
    for (size_t i = 0; i < BODY_FIELDS_ASIDE_MAX / piece.len; i++)
        body_fields_take_any(&call, buf_slice(&piece));
    assert_true(body_fields_size(&call) >= BODY_FIELDS_ASIDE_MAX);
    body_fields_take_any(&call, SLICE("a"));
    assert_true(body_fields_size(&call) < 3 * (size_t)BODY_FIELDS_CUT_MAX);
    body_fields_drop(&call);
    buf_finish(&piece);
}

static void ignored_body_takes_no_memory_and_is_rejected_at_its_end(void **state)
{
    (void)state;
    struct api_call call = { 0 };
    struct body_fields *fields;
    struct slice object;
    body_fields_ignore(&call, "nobody wants it");
    body_fields_take_any(&call, SLICE("{\"a\":["));
    assert_int_equal(feed_strings(&call, 10, LONG), 0);
    assert_int_equal(body_fields_end(&call, &fields, &object), ERR_INVALID);
    assert_string_equal(call.why.text, "nobody wants it");
    assert_null(call.state);
}

static void invalid_body_is_discarded_until_its_end(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum err code;
    } wrong[] = { { "{\"a\":tru!", ERR_INVALID }, { "{\"a\":[1", ERR_TOO_LARGE } };
    for (size_t i = 0; i < 2; i++) {
        struct api_call call = { 0 };
        struct body_fields *fields;
        struct slice object;
        struct buf more = { 0 };
        body_fields_take_any(&call, slice_of(wrong[i].text));
        add_times(&more, ",1", BODY_FIELDS_BESIDE_MAX);
        body_fields_take_any(&call, buf_slice(&more));
        assert_int_equal(body_fields_size(&call), 0);
        body_fields_take_any(&call, SLICE("]}"));
        assert_int_equal(body_fields_end(&call, &fields, &object), wrong[i].code);
        assert_true(call.why.text[0]);
        assert_null(call.state);
        buf_finish(&more);
    }
}

static void plain_fields_set_nothing_aside(void **state)
{
    (void)state;
    struct buf body = { 0 };
    struct slice object;
    buf_add_text(&body, "{\"a\":\"");
    add_times(&body, "x", LONG);
    buf_add_text(&body, "\"}");
    struct body_fields *fields = feed(body_fields_take, buf_slice(&body), 100, &object);
    assert_true(slice_equal(object, buf_slice(&body)));
    body_fields_free(fields);
    buf_finish(&body);
}

static void body_that_is_not_an_object_is_rejected(void **state)
{
    (void)state;
    static const struct {
        const char *body, *text;
        bool at_once;
    } cases[] = {
        { "", "Request body is empty", false },
        { "{\"a\":", "Invalid JSON: the body ends too early", false },
        { "{\"a\":\"\x01\x30\"}", "Invalid JSON at byte 6", true },
        { "{}x", "Invalid JSON at byte 2", true },
        { "[]", "Validation error: the body must be a JSON object", false },
        { "\"text\"", "Validation error: the body must be a JSON object", false },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct api_call call = { 0 };
        struct body_fields *fields;
        struct slice body = slice_of(cases[i].body), object;
        enum err refused = body.len ? body_fields_take_long(&call, body) : OK;
        assert_int_equal(refused, cases[i].at_once ? ERR_INVALID : OK);
        if (!refused)
            assert_int_equal(body_fields_end(&call, &fields, &object), ERR_INVALID);
        assert_string_equal(call.why.text, cases[i].text);
        assert_null(call.state);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(long_string_reads_as_if_it_came_in_one_piece),
        cmocka_unit_test(long_string_is_marked_as_json_or_not),
        cmocka_unit_test(short_and_deep_strings_stay_in_the_object),
        cmocka_unit_test(several_long_strings_are_distinguished),
        cmocka_unit_test(too_large_rest_of_a_body_is_rejected_on_arrival),
        cmocka_unit_test(body_that_is_never_rejected_sets_deep_strings_aside),
        cmocka_unit_test(too_long_string_keeps_its_beginning_and_length),
        cmocka_unit_test(memory_of_many_long_strings_is_counted),
        cmocka_unit_test(truncated_string_frees_its_memory_at_once),
        cmocka_unit_test(ignored_body_takes_no_memory_and_is_rejected_at_its_end),
        cmocka_unit_test(invalid_body_is_discarded_until_its_end),
        cmocka_unit_test(plain_fields_set_nothing_aside),
        cmocka_unit_test(body_that_is_not_an_object_is_rejected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
