/* notice_routes.c - the route where workers open the socket that notifies them of runs. */
#include "api/request/route.h"
#include "api/worker_notices/notice_calls.h"

static enum err upgrade(struct api_call *call)
{
    enum err refused = api_check_ready(call);
    if (refused)
        return refused;
    if (!slice_is(api_query(call, "EIO"), "4")) {
        api_reply_json(call, 400,
                       SLICE("{\"code\":5,\"message\":\"Unsupported protocol version\"}"));
        return OK;
    }
    if (!slice_is(api_query(call, "transport"), "websocket")) {
        api_reply_json(call, 400, SLICE("{\"code\":0,\"message\":\"Transport unknown\"}"));
        return OK;
    }
    run_notifications_accept(call);
    return OK;
}

/* clang-format off */
static const struct route routes[] = {
    { .method = HTTP_GET_, .path = "/socket.io/",
      .needs_lead = true, .handle = upgrade,
      .id = "worker_notices_v1", .summary = "Socket that notifies workers of runs that changed",
      .query = "EIO: string, transport: string",
      .status = 101,
      .also = "426" },
    { 0 },
};
/* clang-format on */

const struct area notices_area = { .tag = "workers", .routes = routes };
