/* stream_routes.c - the table of stream routes. */
#include "api/streams/stream_calls.h"

enum {
    ANY = AUTH_KEY | AUTH_PUBLIC,
    PART_MAX = 512 << 10,
    INPUT_MAX = 128 << 10, /* escaped up to three times, within one turn */
    PIPE_MAX = 1 << 30,
};

/* clang-format off */
static const struct route routes[] = {
    { .method = HTTP_GET_, .path = "/realtime/v1/streams/{runId}/input/{streamId}",
      .auth = ANY, .handle = stream_open_input,
      .is_alone = true, .id = "read_input_stream_v1", .summary = "Read an input stream of a run",
      .gives = "text/event-stream",
      .reply = "string",
      .also = "422" },
    { .method = HTTP_POST_, .path = "/realtime/v1/streams/{runId}/input/{streamId}",
      .auth = ANY, .body_limit = INPUT_MAX, .handle = stream_send,
      .id = "send_input_stream_v1", .summary = "Send a record to a run",
      .body = "{data: any, ...}",
      .reply = "{ok: boolean}",
      .also = "422 507" },
    { .method = HTTP_GET_, .path = "/realtime/v1/streams/{runId}/{streamId}",
      .auth = ANY, .handle = stream_open_output,
      .is_alone = true, .id = "read_stream_v1", .summary = "Read a stream of a run",
      .gives = "text/event-stream",
      .reply = "string",
      .also = "410 422" },
    { .method = HTTP_GET_, .path = "/realtime/v1/streams/{runId}/{target}/{streamId}",
      .auth = AUTH_KEY, .handle = stream_probe,
      .id = "probe_stream_v1",
      .summary = "The number of the last chunk, in x-last-chunk-index",
      .is_head = true,
      .also = "405" },
    { .method = HTTP_PUT_, .path = "/realtime/v1/streams/{runId}/{target}/{streamId}",
      .auth = AUTH_KEY, .body_limit = PART_MAX, .handle = stream_create,
      .id = "create_stream_v1", .summary = "Open a stream of a run",
      .status = 202,
      .reply = "{...}",
      .also = "413 422 507" },
    { .method = HTTP_POST_, .path = "/realtime/v1/streams/{runId}/{target}/{streamId}",
      .auth = AUTH_KEY | BODY_SLOW, .body_limit = PIPE_MAX, .handle = stream_pipe,
      .on_body = stream_take_piece,
      .is_alone = true, .id = "pipe_stream_v1", .summary = "Write chunks as they come, one per line",
      .takes = "application/x-ndjson",
      .body = "string",
      .also = "408 422 507" },
    { .method = HTTP_POST_,
      .path = "/realtime/v1/streams/{runId}/{target}/{streamId}/append",
      .auth = AUTH_KEY, .body_limit = PART_MAX, .handle = stream_append_part,
      .id = "append_stream_v1", .summary = "Append one chunk",
      .takes = "text/plain",
      .body = "string",
      .reply = "{ok: boolean}",
      .also = "422 507" },
    { 0 },
};
/* clang-format on */

const struct area streams_area = { .tag = "streams", .routes = routes };
