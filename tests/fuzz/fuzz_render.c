/* fuzz_render - the row of a run stays JSON, whatever a packet or a stored error contains.
 *
 * The first byte chooses the content type, the rest is the content. */
#include <assert.h>
#include <stdint.h>

#include "base/json/scan.h"
#include "base/text.h"
#include "core/wire/render.h"
#include "core/wire/run_error.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const types[] = { NULL, "application/json", "application/super+json",
                                     "text/plain", "application/store" };

static void check_packet(struct slice content, struct slice type)
{
    struct buf out = { 0 };
    struct bytes *bytes = bytes_create(content);
    if (render_packet(bytes, type, &out))
        assert(scan_is_json(buf_slice(&out)));
    else
        assert(out.len == 0);
    bytes_unref(bytes);
    buf_finish(&out);
}

static void check_error(struct slice stored)
{
    struct buf out = { 0 };
    struct bytes *bytes = bytes_create(stored);
    run_error_render(bytes, &out);
    assert(scan_is_json(buf_slice(&out)));
    assert(scan_type(scan_member(buf_slice(&out), "message")) == SCAN_STRING);
    bytes_unref(bytes);
    buf_finish(&out);
}

/* Stored texts were UTF-8 when they came in. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size || !text_is_utf8((struct slice){ (const char *)data + 1, size - 1 }))
        return 0;
    struct slice content = { (const char *)data + 1, size - 1 };
    check_packet(content, slice_of(types[data[0] % (sizeof(types) / sizeof(types[0]))]));
    if (scan_is_json(content))
        check_error(content);
    return 0;
}
