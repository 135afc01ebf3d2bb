/* realtime_routes.c - routes to subscriptions: a WebSocket, an event stream, long polls. */
#include "api/realtime/realtime.h"
#include "api/runs/run_query.h"

#define SHAPE_QUERY                                                                        \
    "offset?: string, handle?: string, shape_id?: string, live?: string, skipColumns?: "   \
    "string, cursor?: string, log?: string, expired_handle?: string"

/* clang-format off */
static const struct route routes[] = {
    { .method = HTTP_GET_, .path = "/realtime/v1/ws",
      .needs_lead = true, .follows = true, .is_alone = true, .handle = socket_open,
      .id = "open_socket_v1", .summary = "WebSocket of runs.v1",
      .query = "token?: string",
      .status = 101,
      .also = "401 403 426 429" },
    { .method = HTTP_GET_, .path = "/realtime/v1/runs/{runId}",
      .auth = AUTH_KEY | AUTH_PUBLIC, .follows = true, .is_alone = true, .awaited = { 404 }, .handle = long_poll_run,
      .id = "subscribe_run_v1", .summary = "Long poll of a run",
      .query = SHAPE_QUERY,
      .reply = "ShapeRows",
      .also = "409" },
    { .method = HTTP_GET_, .path = "/realtime/v1/runs",
      .auth = AUTH_KEY | AUTH_PUBLIC, .follows = true, .is_alone = true, .handle = long_poll_tags,
      .id = "subscribe_runs_v1", .summary = "Long poll of the runs with tags",
      .query = SHAPE_QUERY ", tags?: string, createdAt?: string",
      .reply = "ShapeRows",
      .also = "409" },
    { .method = HTTP_GET_, .path = "/realtime/v1/batches/{batchId}",
      .auth = AUTH_KEY | AUTH_PUBLIC, .follows = true, .is_alone = true, .awaited = { 404 }, .handle = long_poll_batch,
      .id = "subscribe_batch_v1", .summary = "Long poll of a batch",
      .query = SHAPE_QUERY,
      .reply = "ShapeRows",
      .also = "409" },
    { .method = HTTP_GET_, .path = "/realtime/v1/events",
      .needs_lead = true, .follows = true, .is_alone = true, .handle = events_open,
      .id = "stream_events_v1", .summary = "Changes as server-sent events",
      .query = "run?: string, tags?: string, batch?: string, all?: string, task?: string, "
          "since?: string, fields?: string, api?: string, from?: string, token?: string, "
          "watch?: string, limit?: string, counts?: string, " RUN_FILTER_QUERY,
      .gives = "text/event-stream",
      .reply = "string",
      .also = "401 403 404 409 429" },
    { 0 },
};
/* clang-format on */

static const struct schema schemas[] = {
    { "ShapeRows", "{headers: {...}, key?: string, value?: {...}}[]" },
    { 0 },
};

const struct area realtime_area = { .tag = "realtime",
                                    .routes = routes,
                                    .schemas = schemas };
