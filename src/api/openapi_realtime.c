/* openapi_realtime.c - the operations of realtime. */
#include "api/operation.h"

/* clang-format off */
const struct operation realtime_operations[] = {
    { HTTP_GET_, "/realtime/v1/runs/{runId}",
      .id = "subscribe_run_v1", .summary = "Long poll of a run",
      .query =
          "offset?: string, handle?: string, live?: string, cursor?: string, columns?: "
          "string, skipColumns?: string",
      .reply = "ShapeRows",
      .also = "409" },
    { HTTP_GET_, "/realtime/v1/runs",
      .id = "subscribe_runs_v1", .summary = "Long poll of the runs with tags",
      .query =
          "offset?: string, handle?: string, live?: string, cursor?: string, columns?: "
          "string, skipColumns?: string, tags?: string, createdAt?: string",
      .reply = "ShapeRows",
      .also = "409" },
    { HTTP_GET_, "/realtime/v1/batches/{batchId}",
      .id = "subscribe_batch_v1", .summary = "Long poll of a batch",
      .query =
          "offset?: string, handle?: string, live?: string, cursor?: string, columns?: "
          "string, skipColumns?: string",
      .reply = "ShapeRows",
      .also = "409" },
    { HTTP_GET_, "/realtime/v1/events",
      .id = "stream_events_v1", .summary = "Changes as server-sent events",
      .query =
          "run?: string, tags?: string, batch?: string, all?: string, task?: string, "
          "since?: string, fields?: string, token?: string",
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
