/* The messages of runs.v1: how the client's are read, and what the gateway's look like. */
#include "tests/support/world/unit.h"

#include "base/json/scan.h"
#include "core/wire/render.h"
#include "core/wire/wire.h"
#include "runcast/protocol.h"
#include "tests/support/world/show_msgpack.h"

static const int64_t now_ms = 1700000000000;

/* ---- reading ---- */

static struct wire_message read_ok(const char *text)
{
    struct wire_message message;
    struct failure why = { 0 };
    const char *code = NULL;
    if (wire_read(slice_of(text), now_ms, &message, &code, &why))
        fail_msg("%s: %s: %s", text, code, why.text);
    return message;
}

/* A refused message leaves nothing to finish, and its error can be sent. */
static void assert_refused(struct slice text, const char *code, const char *part)
{
    struct wire_message message;
    struct failure why = { 0 };
    const char *found = NULL;
    assert_int_equal(wire_read(text, now_ms, &message, &found, &why), ERR_INVALID);
    assert_string_equal(found, code);
    if (!strstr(why.text, part))
        fail_msg("'%s' is not in '%s'", part, why.text);
    assert_null(message.token);
    assert_null(message.filter.name);
    assert_null(message.filter.query);
    struct buf out = { 0 };
    wire_error(ENCODING_JSON, message.has_id ? message.id : -1, found, why.text, &out);
    assert_true(scan_is_json(buf_slice(&out)));
    buf_finish(&out);
}

static void hello_may_be_empty(void **state)
{
    (void)state;
    struct wire_message message = read_ok("{\"op\":\"hello\"}");
    assert_int_equal(message.op, WIRE_HELLO);
    assert_null(message.token);
    assert_false(message.has_fields);
    assert_false(message.vocabulary_b);
    assert_int_equal(message.every_ms, 0);
    wire_message_finish(&message);
}

static void hello_has_a_token_and_options(void **state)
{
    (void)state;
    struct wire_message message =
        read_ok(" {\"op\":\"hello\",\"token\":\"tr_dev_x\",\"fields\":[\"-payload\"],"
                "\"every\":250,\"api\":\"2025-07-16\",\"later\":{\"x\":[1]}}\n");
    assert_string_equal(message.token, "tr_dev_x");
    assert_true(message.has_fields);
    assert_int_equal(message.fields, FIELDS_DEFAULT & ~(1 << FIELD_PAYLOAD));
    assert_int_equal(message.every_ms, 250);
    assert_true(message.vocabulary_b);
    wire_message_finish(&message);
}

static void unknown_members_are_noted(void **state)
{
    (void)state;
    struct wire_message message =
        read_ok("{\"op\":\"sub\",\"id\":1,\"all\":true,\"tag\":[],\"token\":null,\"\":1}");
    assert_int_equal(message.ignored->count, 3);
    assert_true(slice_is(bytes_slice(message.ignored->names[0]), "tag"));
    assert_true(slice_is(bytes_slice(message.ignored->names[1]), "token"));
    assert_true(slice_is(bytes_slice(message.ignored->names[2]), ""));
    wire_message_finish(&message);

    message = read_ok("{\"op\":\"unsub\",\"id\":1}");
    assert_null(message.ignored);
}

static void noted_members_are_limited(void **state)
{
    (void)state;
    struct buf text = { 0 };
    buf_add_text(&text, "{\"op\":\"hello\"");
    buf_print(&text, ",\"%01025d\":1", 0);
    for (int i = 0; i < 40; i++)
        buf_print(&text, ",\"%0100d\":1", i);
    buf_add_text(&text, "}");
    buf_add_char(&text, '\0');
    struct wire_message message = read_ok(text.ptr);
    assert_int_equal(message.ignored->count, WIRE_IGNORED_BYTES / 100);
    wire_message_finish(&message);
    buf_finish(&text);
}

static void fields_are_chosen_or_omitted(void **state)
{
    (void)state;
    static const struct {
        const char *list;
        uint32_t fields;
    } cases[] = {
        { "[]", FIELDS_ALWAYS },
        { "[\"payload\"]", FIELDS_ALWAYS | 1 << FIELD_PAYLOAD },
        { "[\"payload\",\"status\",\"error\"]",
          FIELDS_ALWAYS | 1 << FIELD_PAYLOAD | 1 << FIELD_ERROR },
        { "[\"-payload\",\"-output\"]",
          FIELDS_DEFAULT & ~(1 << FIELD_PAYLOAD | 1 << FIELD_OUTPUT) },
        { "[\"payload\",\"output\",\"-output\"]", FIELDS_ALWAYS | 1 << FIELD_PAYLOAD },
        { "[\"-status\",\"-id\",\"-tags\"]", FIELDS_DEFAULT },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[200];
        snprintf(text, sizeof(text), "{\"op\":\"hello\",\"fields\":%s}", cases[i].list);
        struct wire_message message = read_ok(text);
        assert_int_equal(message.fields, cases[i].fields);
        wire_message_finish(&message);
    }
}

static void sub_selects_a_run_a_batch_tags_or_all(void **state)
{
    (void)state;
    struct wire_message message = read_ok("{\"op\":\"sub\",\"id\":1,\"run\":\"run_x\"}");
    assert_int_equal(message.op, WIRE_SUB);
    assert_true(message.has_id);
    assert_int_equal(message.id, 1);
    assert_int_equal(message.filter.kind, TOPIC_RUN);
    assert_string_equal(message.filter.name->data, "run_x");
    assert_false(message.has_from);
    wire_message_finish(&message);

    message = read_ok("{\"op\":\"sub\",\"id\":0,\"batch\":\"batch_x\"}");
    assert_int_equal(message.filter.kind, TOPIC_BATCH);
    assert_string_equal(message.filter.name->data, "batch_x");
    wire_message_finish(&message);

    message =
        read_ok("{\"op\":\"sub\",\"id\":9007199254740991,\"tags\":[\"a\",\"\xc3\xa9\"]}");
    assert_int_equal(message.id, INT64_C(9007199254740991));
    assert_int_equal(message.filter.kind, TOPIC_TAG);
    assert_string_equal(message.filter.name->data, "a");
    assert_int_equal(message.filter.query->filter.tag_count, 2);
    assert_true(message.filter.query->filter.every_tag);
    assert_true(slice_is(message.filter.query->filter.tags[1], "\xc3\xa9"));
    wire_message_finish(&message);

    message = read_ok("{\"op\":\"sub\",\"id\":2,\"all\":true,\"run\":null}");
    assert_int_equal(message.filter.kind, TOPIC_ALL);
    assert_null(message.filter.name);
    assert_null(message.filter.query);
    wire_message_finish(&message);
}

static void sub_can_be_narrowed_and_resumed(void **state)
{
    (void)state;
    struct wire_message message =
        read_ok("{\"op\":\"sub\",\"id\":3,\"all\":true,\"task\":[\"mail\",\"sms\"],"
                "\"since\":\"24h\",\"limit\":200,\"from\":[\"9f3c\",123400,123300]}");
    assert_int_equal(message.filter.query->filter.task_count, 2);
    assert_true(slice_is(message.filter.query->filter.tasks[0], "mail"));
    assert_int_equal(message.filter.created_from, now_ms - 24 * 3600 * 1000);
    assert_int_equal(message.limit, 200);
    assert_true(message.has_from);
    assert_string_equal(message.from_epoch, "9f3c");
    assert_int_equal(message.from_seq, 123400);
    assert_int_equal(message.from_base, 123300);
    wire_message_finish(&message);
}

static void since_is_a_duration_or_a_time(void **state)
{
    (void)state;
    static const struct {
        const char *since;
        int64_t created_from;
    } cases[] = {
        { "90s", 1699999910000 },
        { "1h30m", 1699994600000 },
        { "2023-11-14T22:13:20.000Z", 1700000000000 },
        { "2023-11-14T23:13:20+01:00", 1700000000000 },
        { "2023-11-14", 1699920000000 },
        { "2100-01-01", 4102444800000 },
        { "9999w", 0 },
        { "1900-01-01", 0 },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[200];
        snprintf(text, sizeof(text),
                 "{\"op\":\"sub\",\"id\":1,\"all\":true,\"since\":\"%s\"}", cases[i].since);
        struct wire_message message = read_ok(text);
        assert_int_equal(message.filter.created_from, cases[i].created_from);
        wire_message_finish(&message);
    }
}

static void unsub_has_an_id_and_auth_a_token(void **state)
{
    (void)state;
    struct wire_message message = read_ok("{\"op\":\"unsub\",\"id\":7}");
    assert_int_equal(message.op, WIRE_UNSUB);
    assert_int_equal(message.id, 7);
    wire_message_finish(&message);

    message = read_ok("{\"op\":\"auth\",\"token\":\"a.b.c\"}");
    assert_int_equal(message.op, WIRE_AUTH);
    assert_string_equal(message.token, "a.b.c");
    wire_message_finish(&message);
}

static const struct {
    const char *text, *code, *part;
} refusals[] = {
    { "", "bad_message", "not JSON" },
    { "{", "bad_message", "not JSON" },
    { "{}x", "bad_message", "not JSON" },
    { "[]", "bad_message", "one JSON object" },
    { "\"sub\"", "bad_message", "one JSON object" },
    { "{\"op\":\"hello\",\"op\":\"sub\"}", "bad_message", "twice" },
    { "{\"op\":\"hello\",\"x\":{\"a\":1,\"a\":2}}", "bad_message", "twice" },
    { "{\"op\":\"hello\",\"token\":\"a\\u0000b\"}", "bad_member", "token:" },
    { "{\"op\":\"hello\",\"token\":\"\xff\"}", "bad_message", "not JSON" },
    { "{\"op\":\"sub\",\"id\":9223372036854775808}", "bad_member", "id:" },
    { "{}", "unknown_op", "op:" },
    { "{\"op\":null}", "unknown_op", "op:" },
    { "{\"op\":\"\"}", "bad_member", "op:" },
    { "{\"op\":1}", "bad_member", "op:" },
    { "{\"op\":\"Hello\"}", "unknown_op", "\"Hello\"" },
    { "{\"op\":\"hello\",\"token\":1}", "bad_member", "token:" },
    { "{\"op\":\"hello\",\"token\":\"\"}", "bad_member", "token:" },
    { "{\"op\":\"hello\",\"fields\":\"id\"}", "bad_member", "fields:" },
    { "{\"op\":\"hello\",\"fields\":[1]}", "bad_member", "fields[0]:" },
    { "{\"op\":\"hello\",\"fields\":[\"id\",\"-size\"]}", "bad_member", "\"-size\"" },
    { "{\"op\":\"hello\",\"every\":-1}", "bad_member", "every:" },
    { "{\"op\":\"hello\",\"every\":1.5}", "bad_member", "every:" },
    { "{\"op\":\"hello\",\"every\":3600001}", "bad_member", "every:" },
    { "{\"op\":\"hello\",\"token\":\"x\",\"api\":\"2030-01-01\"}", "unknown_api", "api:" },
    { "{\"op\":\"auth\"}", "bad_member", "token:" },
    { "{\"op\":\"unsub\"}", "bad_member", "id:" },
    { "{\"op\":\"unsub\",\"id\":\"1\"}", "bad_member", "id:" },
    { "{\"op\":\"unsub\",\"id\":-1}", "bad_member", "id:" },
    { "{\"op\":\"unsub\",\"id\":1.0}", "bad_member", "id:" },
    { "{\"op\":\"unsub\",\"id\":9007199254740992}", "bad_member", "id:" },
    { "{\"op\":\"sub\",\"all\":true}", "bad_member", "id:" },
    { "{\"op\":\"sub\",\"id\":1}", "bad_member", "exactly one" },
    { "{\"op\":\"sub\",\"id\":1,\"all\":true,\"run\":\"r\"}", "bad_member", "exactly one" },
    { "{\"op\":\"sub\",\"id\":1,\"all\":false}", "bad_member", "all:" },
    { "{\"op\":\"sub\",\"id\":1,\"all\":1}", "bad_member", "all:" },
    { "{\"op\":\"sub\",\"id\":1,\"run\":\"\"}", "bad_member", "run:" },
    { "{\"op\":\"sub\",\"id\":1,\"run\":7}", "bad_member", "run:" },
    { "{\"op\":\"sub\",\"id\":1,\"batch\":[\"b\"]}", "bad_member", "batch:" },
    { "{\"op\":\"sub\",\"id\":1,\"tags\":\"a\"}", "bad_member", "tags:" },
    { "{\"op\":\"sub\",\"id\":1,\"tags\":[]}", "bad_member", "tags:" },
    { "{\"op\":\"sub\",\"id\":1,\"tags\":[\"a\",\"\"]}", "bad_member", "tags[1]:" },
    { "{\"op\":\"sub\",\"id\":1,\"tags\":[null]}", "bad_member", "tags[0]:" },
    { "{\"op\":\"sub\",\"id\":1,\"tags\":[\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\","
      "\"a\","
      "\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\"]}",
      "bad_member", "tags:" },
    { "{\"op\":\"sub\",\"id\":1,\"tags\":[\"a\"],\"task\":\"t\"}", "bad_member", "task:" },
    { "{\"op\":\"sub\",\"id\":1,\"tags\":[\"a\"],\"task\":[\"t\",2]}", "bad_member",
      "task[1]:" },
    { "{\"op\":\"sub\",\"id\":1,\"all\":true,\"since\":\"soon\"}", "bad_member",
      "\"soon\"" },
    { "{\"op\":\"sub\",\"id\":1,\"all\":true,\"since\":24}", "bad_member", "since:" },
    { "{\"op\":\"sub\",\"id\":1,\"all\":true,\"limit\":0}", "bad_member", "limit:" },
    { "{\"op\":\"sub\",\"id\":1,\"all\":true,\"limit\":100001}", "bad_member", "limit:" },
    { "{\"op\":\"sub\",\"id\":1,\"all\":true,\"from\":\"9f\"}", "bad_member", "from:" },
    { "{\"op\":\"sub\",\"id\":1,\"all\":true,\"from\":[\"9f\",1]}", "bad_member", "from:" },
    { "{\"op\":\"sub\",\"id\":1,\"all\":true,\"from\":[\"\",1,1]}", "bad_member", "from:" },
    { "{\"op\":\"sub\",\"id\":1,\"all\":true,\"from\":[1,1,1]}", "bad_member", "from:" },
    { "{\"op\":\"sub\",\"id\":1,\"all\":true,\"from\":[\"9f\",-1,-1]}", "bad_member",
      "from:" },
    { "{\"op\":\"sub\",\"id\":1,\"all\":true,\"from\":[\"9f\",1,2]}", "bad_member",
      "from:" },
    { "{\"op\":\"sub\",\"id\":1,\"tags\":[\"a\"],"
      "\"from\":[\"123456789012345678901234\",1,1]}",
      "bad_member", "from:" },
};

static void invalid_message_is_rejected_by_name(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++)
        assert_refused(slice_of(refusals[i].text), refusals[i].code, refusals[i].part);
}

static void rejected_message_keeps_its_subscription_id(void **state)
{
    (void)state;
    struct wire_message message;
    struct failure why;
    const char *code;
    assert_int_equal(wire_read(SLICE("{\"op\":\"sub\",\"id\":42,\"run\":\"\"}"), now_ms,
                               &message, &code, &why),
                     ERR_INVALID);
    assert_true(message.has_id);
    assert_int_equal(message.id, 42);
}

static void tag_length_is_limited_in_characters(void **state)
{
    (void)state;
    struct buf text = { 0 };
    for (size_t chars = 128; chars <= 129; chars++) {
        buf_clear(&text);
        buf_add_text(&text, "{\"op\":\"sub\",\"id\":1,\"tags\":[\"");
        for (size_t i = 0; i < chars; i++)
            buf_add_text(&text, "\xe2\x82\xac");
        buf_add_text(&text, "\"]}");
        if (chars > 128) {
            assert_refused(buf_slice(&text), "bad_member", "tags[0]:");
            continue;
        }
        struct wire_message message;
        struct failure why;
        const char *code;
        assert_int_equal(wire_read(buf_slice(&text), now_ms, &message, &code, &why), OK);
        wire_message_finish(&message);
    }
    buf_finish(&text);
}

static void quoted_text_is_cut_between_characters(void **state)
{
    (void)state;
    for (size_t lead = 0; lead < 4; lead++) {
        struct buf text = { 0 };
        buf_add_text(&text, "{\"op\":\"");
        for (size_t i = 0; i < lead; i++)
            buf_add_char(&text, 'x');
        for (size_t i = 0; i < 100; i++)
            buf_add_text(&text, "\xf0\x9f\x98\x80");
        buf_add_text(&text, "\"}");
        assert_refused(buf_slice(&text), "unknown_op", "is unknown; send hello");
        buf_finish(&text);
    }
}

static void nesting_of_messages_is_limited(void **state)
{
    (void)state;
    struct buf text = { 0 };
    for (size_t depth = 63; depth <= 64; depth++) {
        buf_clear(&text);
        buf_add_text(&text, "{\"op\":\"hello\",\"later\":");
        for (size_t i = 0; i < depth; i++)
            buf_add_char(&text, '[');
        for (size_t i = 0; i < depth; i++)
            buf_add_char(&text, ']');
        buf_add_char(&text, '}');
        if (depth > 63) {
            assert_refused(buf_slice(&text), "bad_message", "nested");
            continue;
        }
        struct wire_message message;
        struct failure why;
        const char *code;
        assert_int_equal(wire_read(buf_slice(&text), now_ms, &message, &code, &why), OK);
        wire_message_finish(&message);
    }
    buf_finish(&text);
}

/* ---- writing ---- */

/* Compares the buffer in either encoding and empties it. */
static void assert_message(enum encoding encoding, struct buf *out, const char *expected)
{
    struct buf shown = { 0 };
    if (encoding == ENCODING_MSGPACK)
        assert_true(show_msgpack(buf_slice(out), &shown));
    else
        buf_add(&shown, buf_slice(out));
    struct bytes *found = buf_to_bytes(&shown);
    assert_string_equal(found->data, expected);
    bytes_unref(found);
    buf_finish(&shown);
    buf_clear(out);
}

static void welcome_has_the_position_the_fields_and_the_limits(void **state)
{
    (void)state;
    const struct wire_limits limits = { 256, 16, 65536, 50, 200, 16, 200 };
    struct view view = { .encoding = ENCODING_JSON, .fields = FIELDS_ALWAYS };
    struct buf out = { 0 };
    wire_welcome(&view, "9f3c", 123400, SLICE("dev"), 0, &limits, NULL, &out);
    assert_message(view.encoding, &out,
                   "{\"op\":\"welcome\",\"epoch\":\"9f3c\",\"seq\":123400,\"env\":\"dev\","
                   "\"fields\":[\"id\",\"taskIdentifier\",\"status\",\"createdAt\","
                   "\"updatedAt\",\"tags\",\"batchId\"],\"limits\":{\"subscriptions\":256,"
                   "\"tags\":16,\"messageBytes\":65536,\"messagesPerSecond\":50,"
                   "\"burst\":200,\"watches\":16,\"watchLimit\":200}}");
    view = (struct view){ .encoding = ENCODING_MSGPACK, .fields = 1 << FIELD_ID };
    wire_welcome(&view, "9f3c", 1, SLICE("dev"), 1700000000000, &limits, NULL, &out);
    assert_message(view.encoding, &out,
                   "{\"op\":\"welcome\",\"epoch\":\"9f3c\",\"seq\":1,\"env\":\"dev\","
                   "\"fields\":[\"id\"],\"expires\":@1700000000.000000000,"
                   "\"limits\":{\"subscriptions\":256,\"tags\":16,\"messageBytes\":65536,"
                   "\"messagesPerSecond\":50,\"burst\":200,\"watches\":16,"
                   "\"watchLimit\":200}}");
    buf_finish(&out);
}

static void ok_names_the_mode_of_a_subscription(void **state)
{
    (void)state;
    struct buf out = { 0 };
    wire_ok(ENCODING_JSON, 1, false, 42, 1700000000000, NULL, &out);
    assert_message(ENCODING_JSON, &out,
                   "{\"op\":\"ok\",\"id\":1,\"mode\":\"snapshot\",\"count\":42,"
                   "\"since\":\"2023-11-14T22:13:20.000Z\"}");
    wire_ok(ENCODING_JSON, 1, true, -1, 0, NULL, &out);
    assert_message(ENCODING_JSON, &out, "{\"op\":\"ok\",\"id\":1,\"mode\":\"resume\"}");
    wire_ok(ENCODING_MSGPACK, 1, true, 0, 0, NULL, &out);
    assert_message(ENCODING_MSGPACK, &out,
                   "{\"op\":\"ok\",\"id\":1,\"mode\":\"resume\",\"count\":0}");
    buf_finish(&out);
}

static void rows_are_written_in_rows_and_patch_messages(void **state)
{
    (void)state;
    struct rope out = { 0 }, rows = { 0 };
    rope_clear(&out);
    rope_clear(&rows);
    buf_add_text(&rows.text, "[\"a\",1,{}],[\"b\",2,{}]");
    wire_rows(ENCODING_JSON, -1, 7, false, &rows, 2, &out);
    assert_message(ENCODING_JSON, &out.text,
                   "{\"op\":\"patch\",\"seq\":7,\"rows\":[[\"a\",1,{}],[\"b\",2,{}]]}");
    rope_clear(&rows);
    wire_rows(ENCODING_JSON, 3, 8, true, &rows, 0, &out);
    assert_message(ENCODING_JSON, &out.text,
                   "{\"op\":\"rows\",\"id\":3,\"seq\":8,\"more\":true,\"rows\":[]}");
    buf_add(&rows.text, SLICE("\x93\xa1"
                              "a\x01\x80\x93\xa1"
                              "b\x02\x80"));
    wire_rows(ENCODING_MSGPACK, 0, 9, true, &rows, 2, &out);
    assert_message(ENCODING_MSGPACK, &out.text,
                   "{\"op\":\"rows\",\"id\":0,\"seq\":9,\"more\":true,"
                   "\"rows\":[[\"a\",1,{}],[\"b\",2,{}]]}");
    rope_finish(&out);
    rope_finish(&rows);
}

static void rows_of_a_live_list_begin_continue_and_leave(void **state)
{
    (void)state;
    struct rope out = { 0 }, rows = { 0 };
    struct view view = { .encoding = ENCODING_JSON };
    rope_clear(&out);
    rope_clear(&rows);
    render_left(&view, "a", 7, &rows.text);
    wire_list(ENCODING_JSON, 1, 9, true, true, &rows, 1, &out);
    assert_message(ENCODING_JSON, &out.text,
                   "{\"op\":\"list\",\"id\":1,\"seq\":9,\"begin\":true,\"more\":true,"
                   "\"rows\":[[\"a\",7,null,2]]}");
    rope_clear(&rows);
    view.encoding = ENCODING_MSGPACK;
    render_left(&view, "a", 7, &rows.text);
    wire_list(ENCODING_MSGPACK, 1, 9, false, false, &rows, 1, &out);
    assert_message(ENCODING_MSGPACK, &out.text,
                   "{\"op\":\"list\",\"id\":1,\"seq\":9,\"rows\":[[\"a\",7,null,2]]}");
    rope_finish(&out);
    rope_finish(&rows);
}

static void counts_use_the_vocabulary_of_the_view(void **state)
{
    (void)state;
    const uint64_t counts[RUN_STATUS_COUNT] = {
        [RUN_QUEUED] = 2, [RUN_WAITING] = 1, [RUN_EXPIRED] = 4
    };
    struct view view = { .encoding = ENCODING_JSON, .vocabulary = VOCABULARY_B };
    struct buf out = { 0 };
    wire_counts(&view, 3, 12, counts, &out);
    assert_message(view.encoding, &out,
                   "{\"op\":\"counts\",\"id\":3,\"seq\":12,\"byStatus\":{\"QUEUED\":2,"
                   "\"WAITING\":1,\"EXPIRED\":4},\"total\":7}");
    view = (struct view){ .encoding = ENCODING_MSGPACK, .vocabulary = VOCABULARY_A };
    const uint64_t none[RUN_STATUS_COUNT] = { 0 };
    wire_counts(&view, 3, 12, none, &out);
    assert_message(view.encoding, &out,
                   "{\"op\":\"counts\",\"id\":3,\"seq\":12,\"byStatus\":{},\"total\":0}");
    buf_finish(&out);
}

static void short_messages_are_written_as_documented(void **state)
{
    (void)state;
    struct buf out = { 0 };
    wire_end(ENCODING_JSON, 1, NULL, NULL, &out);
    assert_message(ENCODING_JSON, &out, "{\"op\":\"end\",\"id\":1}");
    wire_end(ENCODING_JSON, 1, "forbidden", NULL, &out);
    assert_message(ENCODING_JSON, &out, "{\"op\":\"end\",\"id\":1,\"code\":\"forbidden\"}");
    wire_floor(ENCODING_JSON, 1700000000000, &out);
    assert_message(ENCODING_JSON, &out,
                   "{\"op\":\"floor\",\"updatedAt\":\"2023-11-14T22:13:20.000Z\"}");
    wire_floor(ENCODING_MSGPACK, 1700000000000, &out);
    assert_message(ENCODING_MSGPACK, &out,
                   "{\"op\":\"floor\",\"updatedAt\":@1700000000.000000000}");
    wire_error(ENCODING_JSON, -1, "unknown_op", "say \"sub\"", &out);
    assert_message(
        ENCODING_JSON, &out,
        "{\"op\":\"error\",\"code\":\"unknown_op\",\"message\":\"say \\\"sub\\\"\"}");
    wire_error(ENCODING_MSGPACK, 5, "limit", "too many", &out);
    assert_message(
        ENCODING_MSGPACK, &out,
        "{\"op\":\"error\",\"id\":5,\"code\":\"limit\",\"message\":\"too many\"}");
    wire_ping(ENCODING_JSON, 123456, &out);
    assert_message(ENCODING_JSON, &out, "{\"op\":\"ping\",\"seq\":123456}");
    wire_ping(ENCODING_MSGPACK, UINT64_C(9007199254740991), &out);
    assert_message(ENCODING_MSGPACK, &out, "{\"op\":\"ping\",\"seq\":9007199254740991}");
    wire_expiring(ENCODING_JSON, 30000, &out);
    assert_message(ENCODING_JSON, &out, "{\"op\":\"expiring\",\"in\":30000}");
    wire_drain(ENCODING_JSON, 4200, &out);
    assert_message(ENCODING_JSON, &out, "{\"op\":\"drain\",\"in\":4200}");
    buf_finish(&out);
}

static void class_of_a_close_code_decides_when_to_reconnect(void **state)
{
    (void)state;
    static const struct {
        int code;
        enum protocol_reconnect reconnect;
    } cases[] = {
        { CLOSE_BAD_MESSAGE, RECONNECT_NEVER },
        { CLOSE_BAD_TOKEN, RECONNECT_NEVER },
        { CLOSE_VERSION, RECONNECT_NEVER },
        { 4099, RECONNECT_NEVER },
        { CLOSE_INTERNAL, RECONNECT_LATER },
        { CLOSE_TOKEN_EXPIRED, RECONNECT_LATER },
        { CLOSE_OVERLOAD, RECONNECT_LATER },
        { 4199, RECONNECT_LATER },
        { CLOSE_DRAIN, RECONNECT_NOW },
        { CLOSE_MOVED, RECONNECT_NOW },
        { 1000, RECONNECT_NEVER },
        { 1001, RECONNECT_NOW },
        { 1006, RECONNECT_LATER },
        { 1012, RECONNECT_NOW },
        { 1013, RECONNECT_LATER },
        { 1009, RECONNECT_NEVER },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_int_equal(protocol_reconnect(cases[i].code), cases[i].reconnect);
}

static int forget_names(void **state)
{
    (void)state;
    bytes_forget_shared();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hello_may_be_empty),
        cmocka_unit_test(hello_has_a_token_and_options),
        cmocka_unit_test(unknown_members_are_noted),
        cmocka_unit_test(noted_members_are_limited),
        cmocka_unit_test(fields_are_chosen_or_omitted),
        cmocka_unit_test(sub_selects_a_run_a_batch_tags_or_all),
        cmocka_unit_test(sub_can_be_narrowed_and_resumed),
        cmocka_unit_test(since_is_a_duration_or_a_time),
        cmocka_unit_test(unsub_has_an_id_and_auth_a_token),
        cmocka_unit_test(invalid_message_is_rejected_by_name),
        cmocka_unit_test(rejected_message_keeps_its_subscription_id),
        cmocka_unit_test(tag_length_is_limited_in_characters),
        cmocka_unit_test(quoted_text_is_cut_between_characters),
        cmocka_unit_test(nesting_of_messages_is_limited),
        cmocka_unit_test(welcome_has_the_position_the_fields_and_the_limits),
        cmocka_unit_test(ok_names_the_mode_of_a_subscription),
        cmocka_unit_test(rows_are_written_in_rows_and_patch_messages),
        cmocka_unit_test(rows_of_a_live_list_begin_continue_and_leave),
        cmocka_unit_test(counts_use_the_vocabulary_of_the_view),
        cmocka_unit_test(short_messages_are_written_as_documented),
        cmocka_unit_test(class_of_a_close_code_decides_when_to_reconnect),
    };
    return cmocka_run_group_tests(tests, NULL, forget_names);
}
