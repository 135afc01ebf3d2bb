/* fuzz_notice - a worker's packet is valid or rejected; every span lies within the text. */
#include <assert.h>
#include <stdint.h>

#include "api/worker_notices/notice_requests.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_inside(struct slice span, struct slice text)
{
    assert(span.ptr >= text.ptr && span.ptr + span.len <= text.ptr + text.len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice text = { (const char *)data, size };
    struct socket_packet packet;
    struct notice_requests requests = { 0 };
    struct notice_request request;
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
    notice_requests_add(&requests, &packet);
    while (notice_requests_take(&requests, &request))
        assert(text_is_id(slice_of(request.id), "run"));
    notice_requests_finish(&requests);
    return 0;
}
