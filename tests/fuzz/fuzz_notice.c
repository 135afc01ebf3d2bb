/* A worker's packet is read or refused; every span lies inside the text. */
#include <assert.h>
#include <stdint.h>

#include "api/worker_notices/notice_packet.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_inside(struct slice span, struct slice text)
{
    assert(span.ptr >= text.ptr && span.ptr + span.len <= text.ptr + text.len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice text = { (const char *)data, size }, id;
    struct notice_packet packet;
    if (notice_packet_read(text, &packet))
        return 0;
    check_inside(packet.data, text);
    if (packet.kind == NOTICE_CONNECT && packet.space.len > 1)
        check_inside(packet.space, text);
    assert(packet.kind != NOTICE_SUBSCRIBE || packet.space.len > 0);
    while (notice_packet_next(&packet, &id)) {
        check_inside(id, text);
        assert(id.len > 0 && !memchr(id.ptr, '\\', id.len));
    }
    return 0;
}
