/* openapi_waitpoints.c - the operations of waitpoint tokens. */
#include "call/operation.h"

#define TOKENS "/api/v1/waitpoints/tokens"

/* clang-format off */
const struct operation waitpoints_operations[] = {
    { HTTP_POST_, TOKENS,
      .id = "create_waitpoint_token_v1", .summary = "Create a token",
      .body =
          "{timeout?: string|number|null, idempotencyKey?: string|null, idempotencyKeyTTL?: "
          "string|null, tags?: string|string[]|null, ...}",
      .reply = "{id: string, isCached: boolean, url: string, publicAccessToken?: string}",
      .also = "422 507" },
    { HTTP_GET_, TOKENS,
      .id = "list_waitpoint_tokens_v1", .summary = "List tokens",
      .query =
          "page[size]?: integer, page[after]?: string, page[before]?: string, "
          "filter[status]?: string, filter[idempotencyKey]?: string, filter[tags]?: string, "
          "filter[createdAt][from]?: string, filter[createdAt][to]?: string, "
          "filter[createdAt][period]?: string",
      .reply = "{data: WaitpointToken[], pagination: CursorPage}" },
    { HTTP_GET_, TOKENS "/{waitpointId}",
      .id = "retrieve_waitpoint_token_v1", .summary = "Retrieve a token; its url is empty for who may not complete it",
      .reply = "WaitpointToken" },
    { HTTP_POST_, TOKENS "/{waitpointId}/complete",
      .id = "complete_waitpoint_token_v1", .summary = "Complete a token",
      .body = "{data?: any, ...}",
      .reply = "{success: boolean}", .also = "422 507" },
    { HTTP_POST_, TOKENS "/{waitpointId}/callback/{environment}/{signature}",
      .id = "complete_waitpoint_token_by_url_v1", .summary = "Complete a token by its url",
      .body = "any",
      .reply = "{success: boolean}", .also = "422 507" },
    { HTTP_POST_, "/api/v1/runs/{runId}/input-streams/wait",
      .id = "create_input_stream_waitpoint_v1",
      .summary = "Create a token that the next record of an input stream completes",
      .body =
          "{streamId: string, timeout?: string|null, idempotencyKey?: string|null, "
          "idempotencyKeyTTL?: string|null, tags?: string|string[]|null, "
          "lastSeqNum?: integer|null, ...}",
      .reply = "{waitpointId: string, isCached: boolean}", .also = "422 507" },
    { HTTP_POST_, "/engine/v1/runs/{runId}/waitpoints/tokens/{waitpointId}/wait",
      .id = "wait_for_token_v1", .summary = "Block a run until a token is completed",
      .body = "{...}",
      .reply = "{success: boolean, ...}", .also = "409 422" },
    { 0 },
};
/* clang-format on */

const struct schema waitpoints_schemas[] = {
    { "WaitpointToken",
      "{id: string, url: string, status: 'WAITING'|'COMPLETED'|'TIMED_OUT',"
      " idempotencyKey?: string, idempotencyKeyExpiresAt?: datetime,"
      " timeoutAt?: datetime, completedAt?: datetime, output?: string,"
      " outputType?: string, outputIsError?: boolean, tags: string[],"
      " createdAt: datetime}" },
    { 0 },
};
