/* fuzz_scan - any bytes as JSON.
 *
 * It never matters where the pieces end. Valid JSON can be read, every span of it is JSON,
 * and a string reads back as it was written. Spans of invalid JSON lie within it, so the
 * readers run over that, too. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json/scan.h"
#include "base/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool accepts_in_pieces(struct slice text, size_t piece)
{
    struct scan scan;
    scan_init(&scan);
    for (size_t at = 0; at < text.len; at += piece) {
        size_t left = text.len - at;
        scan_feed(&scan, (struct slice){ text.ptr + at, left < piece ? left : piece });
    }
    return scan_finish(&scan) == OK;
}

static bool accepts_split_at(struct slice text, size_t at)
{
    struct scan scan;
    scan_init(&scan);
    scan_feed(&scan, (struct slice){ text.ptr, at });
    scan_feed(&scan, slice_from(text, at));
    return scan_finish(&scan) == OK;
}

static void check_string(struct slice value)
{
    struct buf decoded = { 0 }, written = { 0 }, again = { 0 };
    assert(scan_string(value, &decoded));
    buf_add_json(&written, buf_slice(&decoded));
    assert(text_is_utf8(buf_slice(&written))); /* halves of characters are escaped again */
    assert(scan_is_json(buf_slice(&written)));
    assert(scan_string(buf_slice(&written), &again));
    assert(slice_equal(buf_slice(&decoded), buf_slice(&again)));
    assert(scan_equal(value, buf_slice(&written)));
    buf_finish(&decoded);
    buf_finish(&written);
    buf_finish(&again);
}

/* Calls every reader on a container, one level deep. Returns the number of its items. */
static size_t walk(struct slice value, bool valid)
{
    struct slice key, item;
    size_t count = 0;
    struct scan_members members = scan_members(value);
    if (scan_type(value) == SCAN_OBJECT) {
        for (; scan_next_member(&members, &key, &item); count++)
            assert(!valid || (scan_is_json(item) && text_is_utf8(key)));
    } else {
        for (; scan_next_element(&members, &item); count++)
            assert(!valid || scan_is_json(item));
    }
    return count;
}

static void read_all(struct slice text, bool valid)
{
    struct buf decoded = { 0 };
    size_t count = walk(text, valid);
    struct slice member = scan_member(text, "a");
    bool repeats = scan_has_duplicate(text);
    assert(!valid || !member.ptr || scan_is_json(member));
    assert(!repeats || count > 1);
    scan_deeper_than(text, 10);
    scan_string(text, &decoded);
    scan_key_is(text, SLICE("a"));
    buf_finish(&decoded);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice text = { (const char *)data, size };
    bool valid = scan_is_json(text);
    assert(accepts_in_pieces(text, 1) == valid);
    assert(accepts_in_pieces(text, 7) == valid);
    for (size_t at = 0; at <= size && size <= 128; at++)
        assert(accepts_split_at(text, at) == valid);

    read_all(text, valid);
    if (!valid)
        return 0;
    assert(text_is_utf8(text));
    assert(scan_type(text) != SCAN_NONE);
    assert(scan_equal(text, text));
    assert(!scan_deeper_than(text, SCAN_DEPTH_MAX));
    if (scan_type(text) == SCAN_STRING)
        check_string(text);
    return 0;
}
