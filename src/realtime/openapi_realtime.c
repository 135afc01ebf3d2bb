/* openapi_realtime.c - the operations of realtime. */
#include "call/operation.h"

/* What is behind skipColumns the SDKs' client sends by itself; nothing depends on it. */
#define SHAPE_QUERY                                                                        \
    "offset?: string, handle?: string, shape_id?: string, live?: string, skipColumns?: "   \
    "string, cursor?: string, log?: string, expired_handle?: string"

/* clang-format off */
const struct operation realtime_operations[] = {
    { HTTP_GET_, "/realtime/v1/runs/{runId}",
      .id = "subscribe_run_v1", .summary = "Long poll of a run",
      .query = SHAPE_QUERY,
      .reply = "ShapeRows",
      .also = "409" },
    { HTTP_GET_, "/realtime/v1/runs",
      .id = "subscribe_runs_v1", .summary = "Long poll of the runs with tags",
      .query = SHAPE_QUERY ", tags?: string, createdAt?: string",
      .reply = "ShapeRows",
      .also = "409" },
    { HTTP_GET_, "/realtime/v1/batches/{batchId}",
      .id = "subscribe_batch_v1", .summary = "Long poll of a batch",
      .query = SHAPE_QUERY,
      .reply = "ShapeRows",
      .also = "409" },
    { HTTP_GET_, "/realtime/v1/events",
      .id = "stream_events_v1", .summary = "Changes as server-sent events",
      .query =
          "run?: string, tags?: string, batch?: string, all?: string, task?: string, "
          "since?: string, fields?: string, api?: string, from?: string, token?: string",
      .reply = "string",
      .gives = "text/event-stream",
      .also = "401 403 404 409 429" },
    { HTTP_GET_, "/realtime/v1/ws",
      .id = "open_socket_v1", .summary = "WebSocket of runs.v1",
      .query = "token?: string",
      .status = 101,
      .also = "401 403 426 429" },
    { 0 },
};
/* clang-format on */

const struct schema realtime_schemas[] = {
    { "ShapeRows", "{headers: {...}, key?: string, value?: {...}}[]" },
    { 0 },
};
