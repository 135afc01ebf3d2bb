/* ws_frame.c - writes frames with the shortest form of their length, masked or not. */
#include "net/http/ws_frame.h"

#include <assert.h>
#include <string.h>
#include <wslay/wslay.h>

#include "net/http/ws.h"

enum { FINAL = 0x80, MASKED = 0x80, SHORT_MAX = 125, TWO_BYTES = 126, EIGHT_BYTES = 127 };

size_t ws_frame_head(unsigned char out[WS_HEAD_MAX], unsigned opcode, size_t len)
{
    out[0] = (unsigned char)(FINAL | opcode);
    if (len <= SHORT_MAX) {
        out[1] = (unsigned char)len;
        return 2;
    }
    size_t width = len <= UINT16_MAX ? 2 : 8;
    out[1] = width == 2 ? TWO_BYTES : EIGHT_BYTES;
    for (size_t i = 0; i < width; i++)
        out[2 + i] = (unsigned char)((uint64_t)len >> 8 * (width - 1 - i));
    return 2 + width;
}

static struct slice make_head(unsigned char head[WS_HEAD_MAX], bool binary, size_t len)
{
    unsigned opcode = binary ? WSLAY_BINARY_FRAME : WSLAY_TEXT_FRAME;
    return (struct slice){ (const char *)head, ws_frame_head(head, opcode, len) };
}

struct bytes *ws_frame(struct slice payload, bool binary)
{
    unsigned char head[WS_HEAD_MAX];
    struct slice all[] = { make_head(head, binary, payload.len), payload };
    return bytes_join(all, 2);
}

struct bytes *ws_frame_begin(struct slice first)
{
    unsigned char head[WS_HEAD_MAX];
    struct slice all[] = { make_head(head, true, first.len), first };
    head[0] &= (unsigned char)~FINAL;
    return bytes_join(all, 2);
}

struct bytes *ws_frame_end(struct slice rest)
{
    unsigned char head[WS_HEAD_MAX];
    size_t len = ws_frame_head(head, WSLAY_CONTINUATION_FRAME, rest.len);
    struct slice all[] = { { (const char *)head, len }, rest };
    return bytes_join(all, 2);
}

size_t ws_frame_split(unsigned char out[WS_SPLIT_MAX], struct slice first, size_t rest_len)
{
    assert(first.len <= WS_CONTROL_MAX);
    size_t len = ws_frame_head(out, WSLAY_BINARY_FRAME, first.len);
    out[0] &= (unsigned char)~FINAL;
    memcpy(out + len, first.ptr, first.len);
    len += first.len;
    return len + ws_frame_head(out + len, WSLAY_CONTINUATION_FRAME, rest_len);
}

struct bytes *ws_frame_rope(const struct rope *payload, bool binary)
{
    unsigned char head[WS_HEAD_MAX];
    return rope_join(make_head(head, binary, rope_len(payload)), payload,
                     (struct slice){ 0 });
}

void ws_frame_add_masked(struct buf *out, unsigned opcode, struct slice payload,
                         const unsigned char mask[WS_MASK_LEN])
{
    unsigned char head[WS_HEAD_MAX];
    size_t head_len = ws_frame_head(head, opcode, payload.len);
    head[1] |= MASKED;
    buf_add(out, (struct slice){ (const char *)head, head_len });
    buf_add(out, (struct slice){ (const char *)mask, WS_MASK_LEN });
    char *at = buf_reserve(out, payload.len);
    for (size_t i = 0; i < payload.len; i++)
        at[i] = (char)((unsigned char)payload.ptr[i] ^ mask[i % WS_MASK_LEN]);
    out->len += payload.len;
}
