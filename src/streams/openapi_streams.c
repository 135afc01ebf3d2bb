/* openapi_streams.c - the operations of streams. */
#include "call/operation.h"

#define INPUT "/realtime/v1/streams/{runId}/input/{streamId}"
#define OUTPUT "/realtime/v1/streams/{runId}/{target}/{streamId}"

/* clang-format off */
const struct operation streams_operations[] = {
    { HTTP_GET_, INPUT,
      .id = "read_input_stream_v1", .summary = "Read what was sent to a run",
      .reply = "string", .gives = "text/event-stream", .also = "422" },
    { HTTP_POST_, INPUT,
      .id = "send_input_stream_v1", .summary = "Send to a run",
      .body = "{data: any, ...}",
      .reply = "{ok: boolean}", .also = "422 507" },
    { HTTP_GET_, "/realtime/v1/streams/{runId}/{streamId}",
      .id = "read_stream_v1", .summary = "Read what a run streams",
      .reply = "string", .gives = "text/event-stream", .also = "422" },
    { HTTP_GET_, OUTPUT, .is_head = true,
      .id = "probe_stream_v1", .summary = "The number of the last chunk, in x-last-chunk-index",
      .also = "405" },
    { HTTP_PUT_, OUTPUT,
      .id = "create_stream_v1", .summary = "Open a stream of a run",
      .status = 202, .reply = "{...}", .also = "413 422 507" },
    { HTTP_POST_, OUTPUT,
      .id = "pipe_stream_v1", .summary = "Write chunks as they come, one a line",
      .body = "string", .takes = "application/x-ndjson", .also = "408 422 507" },
    { HTTP_POST_, OUTPUT "/append",
      .id = "append_stream_v1", .summary = "Append one chunk",
      .body = "string", .takes = "text/plain",
      .reply = "{ok: boolean}", .also = "422 507" },
    { 0 },
};
/* clang-format on */

const struct schema streams_schemas[] = {
    { 0 },
};
