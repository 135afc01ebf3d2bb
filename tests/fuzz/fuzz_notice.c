/* fuzz_notice - a worker's packet is valid or rejected; every span lies within the text. */
#include <assert.h>
#include <stdint.h>

#include "api/worker_notices/notice_wishes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_inside(struct slice span, struct slice text)
{
    assert(span.ptr >= text.ptr && span.ptr + span.len <= text.ptr + text.len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice text = { (const char *)data, size };
    struct socket_packet packet;
    struct notice_wishes wishes = { 0 };
    struct notice_wish wish;
    if (socket_packet_read(text, &packet))
        return 0;
    check_inside(packet.data, text);
    if (packet.kind == SOCKET_CONNECT && packet.space.len > 1)
        check_inside(packet.space, text);
    assert(packet.kind != SOCKET_EVENT || packet.space.len > 0);
    if (packet.kind == SOCKET_EVENT)
        check_inside(packet.name, text);
    if (packet.body.ptr)
        check_inside(packet.body, text);
    notice_wishes_add(&wishes, &packet);
    while (notice_wishes_take(&wishes, &wish))
        assert(text_is_id(slice_of(wish.id), "run"));
    notice_wishes_finish(&wishes);
    return 0;
}
