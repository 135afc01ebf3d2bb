/* openapi_packets.c - the operations of packets. */
#include "call/operation.h"

/* clang-format off */
const struct operation packets_operations[] = {
    { HTTP_PUT_, "/api/v2/packets/{name}",
      .id = "create_upload_payload_url_v2", .summary = "Where a payload may be uploaded",
      .reply = "{presignedUrl: string, storagePath: string}" },
    { HTTP_PUT_, "/api/v1/packets/{name}",
      .id = "create_upload_payload_url_v1", .summary = "The same, as SDK 3.x asks",
      .reply = "PacketUrl" },
    { HTTP_GET_, "/api/v1/packets/{name}",
      .id = "get_payload_url_v1", .summary = "Where a payload may be downloaded; a token "
      "reads those of its runs",
      .reply = "PacketUrl" },
    { HTTP_GET_, "/api/v1/runs/{runId}/packets/{kind}",
      .id =
          "get_run_packet_url_v1", .summary = "Where payload or output of a run may be "
          "downloaded",
      .reply = "PacketUrl" },
    { HTTP_PUT_, "/packets/v1/{environment}/{name}",
      .id = "write_packet_v1", .summary = "Upload a payload to its signed URL",
      .query = "expires: string, signature: string",
      .body = "string",
      .takes = "application/octet-stream",
      .also = "409 507" },
    { HTTP_GET_, "/packets/v1/{environment}/{name}",
      .id = "read_packet_v1", .summary = "Download a payload from its signed URL",
      .query = "expires: string, signature: string",
      .reply = "string",
      .gives = "*/*" },
    { 0 },
};
/* clang-format on */

const struct schema packets_schemas[] = {
    { "PacketUrl", "{presignedUrl: string}" },
    { 0 },
};
