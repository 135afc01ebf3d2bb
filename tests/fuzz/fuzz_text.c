/* fuzz_text - any bytes as a number, a duration, a time, an escaped text or base64url.
 *
 * A value that is read is within its bounds, and its text reads back as the same. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_number(struct slice text)
{
    uint64_t number;
    int64_t with_sign;
    if (!text_to_u64(text, &number)) {
        char written[24];
        snprintf(written, sizeof(written), "%llu", (unsigned long long)number);
        while (text.len > 1 && text.ptr[0] == '0')
            text = slice_from(text, 1);
        assert(slice_is(text, written));
    }
    text_to_i64(text, &with_sign);
}

static void check_duration(struct slice text)
{
    int64_t ms, again;
    if (text_to_duration_ms(text, &ms))
        return;
    assert(ms >= 0 && ms % 1000 == 0 && text.len <= 100);
    char written[48];
    text_from_seconds((uint64_t)ms / 1000, written);
    assert(!text_to_duration_ms(slice_of(written), &again) && again == ms);
}

static void check_time(struct slice text)
{
    int64_t ms, again;
    if (text_to_time(text, &ms))
        return;
    assert(ms >= -INT64_C(8640000000000000) && ms <= INT64_C(8640000000000000));
    char written[TIME_TEXT_LEN + 1];
    text_from_time(ms, written);
    assert(!text_to_time((struct slice){ written, TIME_TEXT_LEN }, &again));
    bool four_digits = ms >= -INT64_C(62167219200000) && ms < INT64_C(253402300800000);
    assert(!four_digits || again == ms);
}

static void check_percent(struct slice text, bool plus_is_space)
{
    size_t len;
    char *out = malloc(text.len + !text.len); /* exactly the promised size */
    if (!text_percent_decode(text, plus_is_space, out, &len)) {
        struct slice decoded = { out, len };
        assert(len <= text.len);
        assert(text_is_utf8(decoded));
        assert(!len || !memchr(out, 0, len));
        assert(!plus_is_space || memchr(text.ptr ? text.ptr : "", '%', text.len) || !len ||
               !memchr(out, '+', len));
    }
    free(out);
}

/* There is one spelling: a text that decodes is the encoding of its bytes. */
static void check_base64url(struct slice text)
{
    size_t len;
    unsigned char *bytes = mem_alloc(text.len * 3 / 4 + 1);
    char *written = mem_alloc(text.len + 4);
    if (!text_from_base64url(text, bytes, &len)) {
        size_t again = text_to_base64url((struct slice){ (char *)bytes, len }, written);
        assert(slice_equal(text, (struct slice){ written, again }));
    }
    free(bytes);
    free(written);
}

/* Any bytes survive being written and read. */
static void check_bytes(struct slice bytes)
{
    size_t len;
    char *written = mem_alloc(bytes.len * 4 / 3 + 4);
    unsigned char *again = mem_alloc(bytes.len + 3);
    size_t written_len = text_to_base64url(bytes, written);
    assert(!text_from_base64url((struct slice){ written, written_len }, again, &len));
    assert(slice_equal(bytes, (struct slice){ (char *)again, len }));
    free(written);
    free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice text = { (const char *)data, size };
    check_number(text);
    check_duration(text);
    check_time(text);
    check_percent(text, false);
    check_percent(text, true);
    check_base64url(text);
    check_bytes(text);
    text_is_id(text, "run");
    return 0;
}
