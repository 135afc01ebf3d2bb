/* fuzz_envelope - bodies that are read while they arrive, with the same result however cut.
 *
 * They are read as an envelope, as one with items, and with long strings set aside. The
 * first byte determines where the body is cut. */
#include <assert.h>
#include <stdint.h>

#include "api/request/body_fields.h"
#include "base/json/item_array.h"
#include "base/json/scan.h"
#include "tests/fuzz/judge.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LONG = 40 * 1024 }; /* longer than strings that body_fields leaves in the object */

/* ---- envelopes ---- */

/* Appends members and payload as one text. */
static void add_all(struct buf *out, const struct envelope *envelope)
{
    for (size_t i = 0; i < envelope->count; i++) {
        const struct envelope_member *m = &envelope->members[i];
        assert(m->value + m->value_len <= envelope->text.len);
        assert(m->key + m->key_len <= envelope->text.len);
        buf_add(out, (struct slice){ envelope->text.ptr + m->key, m->key_len });
        buf_add_char(out, '=');
        buf_add(out, (struct slice){ envelope->text.ptr + m->value, m->value_len });
    }
    buf_add(out, envelope_payload_text(envelope));
    buf_add_char(out, envelope_payload_is_json(envelope) ? 'j' : 't');
}

static enum err read_envelope(struct slice body, size_t piece, struct buf *out)
{
    struct envelope envelope = { 0 };
    struct failure why;
    enum err err = OK;
    for (size_t at = 0; at < body.len && !err; at += piece) {
        size_t left = body.len - at;
        err = envelope_feed(&envelope,
                            (struct slice){ body.ptr + at, left < piece ? left : piece });
    }
    if (!err)
        err = envelope_close(&envelope, &why);
    if (!err) {
        assert(scan_is_json(body));
        add_all(out, &envelope);
    }
    envelope_finish(&envelope);
    return err;
}

struct reader {
    struct item_array array;
    struct failure why;
    struct buf *out;
};

static enum err on_item(struct item_array *array)
{
    struct reader *reader = (struct reader *)(void *)array; /* array is its first member */
    add_all(reader->out, &array->item);
    return OK;
}

static enum err read_items(struct slice body, size_t piece, struct buf *out)
{
    struct reader reader = { .out = out };
    enum err err = OK;
    reader.array.on_item = on_item;
    reader.array.why = &reader.why;
    for (size_t at = 0; at < body.len && !err; at += piece) {
        size_t left = body.len - at;
        err = item_array_feed(&reader.array,
                              (struct slice){ body.ptr + at, left < piece ? left : piece });
    }
    if (!err)
        err = item_array_close(&reader.array);
    if (!err)
        add_all(out, &reader.array.outer);
    item_array_finish(&reader.array);
    return err;
}

/* ---- bodies with long strings ---- */

/* Appends the text of each string of the object and of the objects in it. */
static void add_texts(struct body_fields *fields, struct slice object, int depth,
                      struct buf *out)
{
    struct slice key, value;
    struct scan_members members = scan_members(object);
    while (scan_next_member(&members, &key, &value)) {
        struct buf text = { 0 };
        if (body_fields_string(fields, value, &text))
            buf_add(out, buf_slice(&text));
        else if (scan_type(value) == SCAN_OBJECT && depth)
            add_texts(fields, value, depth - 1, out);
        buf_finish(&text);
    }
}

static enum err read_intake(struct slice body, size_t piece, struct buf *out)
{
    struct api_call call = { 0 };
    struct body_fields *fields;
    struct slice object;
    for (size_t at = 0; at < body.len; at += piece) {
        size_t left = body.len - at;
        struct slice part = { body.ptr + at, left < piece ? left : piece };
        if (body_fields_take_long(&call, part))
            return ERR_INVALID;
    }
    if (body_fields_end(&call, &fields, &object))
        return ERR_INVALID;
    add_texts(fields, object, 1, out);
    body_fields_free(fields);
    return OK;
}

/* ---- all of them ---- */

typedef enum err read_fn(struct slice body, size_t piece, struct buf *out);

static void compare(read_fn *read, struct slice body, size_t piece)
{
    struct buf whole = { 0 }, cut = { 0 };
    enum err err = read(body, body.len + 1, &whole);
    judge_rest();
    assert(read(body, piece, &cut) == err);
    judge_rest();
    if (!err)
        assert(slice_equal(buf_slice(&whole), buf_slice(&cut)));
    buf_finish(&whole);
    buf_finish(&cut);
}

/* Reads the input as the text of a string that is long enough to be set aside. */
static void check_long(struct slice text, size_t piece)
{
    struct buf body = { 0 }, read = { 0 }, expected = { 0 };
    buf_add_text(&body, "{\"completion\":{\"output\":\"");
    for (size_t begin = body.len; text.len && body.len - begin < LONG;)
        buf_add(&body, text);
    buf_add_text(&body, "\"}}");
    struct slice value = scan_member(scan_member(buf_slice(&body), "completion"), "output");
    if (scan_is_json(buf_slice(&body)) && scan_string(value, &expected)) {
        assert(read_intake(buf_slice(&body), piece, &read) == OK);
        if (!memchr(text.ptr, '"', text.len))
            assert(slice_equal(buf_slice(&read), buf_slice(&expected)));
    }
    buf_finish(&body);
    buf_finish(&read);
    buf_finish(&expected);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    struct slice body = { (const char *)data + 1, size - 1 };
    size_t piece = size > 4096 ? size / 8 + data[0] : data[0] % 64 + 1u;
    compare(read_envelope, body, piece);
    compare(read_items, body, piece);
    compare(read_intake, body, piece);
    judge_rest();
    if (body.len < 1024)
        check_long(body, piece * 100);
    return 0;
}
