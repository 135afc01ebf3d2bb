/* openapi_batches.c - the operations of batches. */
#include "call/operation.h"

/* clang-format off */
const struct operation batches_operations[] = {
    { HTTP_POST_, "/api/v1/tasks/batch",
      .id = "create_batch_v1", .summary = "Trigger many runs, as SDK 3.x does",
      .body = "BatchCall",
      .status = 202,
      .reply = "{id: string, isCached: boolean, idempotencyKey?: string, runs: BatchRun[]}",
      .also = "422 507" },
    { HTTP_POST_, "/api/v2/tasks/batch",
      .id = "create_batch_v2", .summary = "Trigger many runs, as SDK 4.0 to 4.2 does",
      .body = "BatchCall",
      .status = 202,
      .reply =
          "{id: string, runCount: integer, idempotencyKey?: string, isCached?: boolean}",
      .also = "422 507" },
    { HTTP_POST_, "/api/v3/batches",
      .id = "create_batch_v3", .summary = "Open a batch for a stream of items",
      .body =
          "{runCount: integer(1..1000), parentRunId?: string, resumeParentOnCompletion?: "
          "boolean, idempotencyKey?: string, taskIdentifiers?: string[], "
          "idempotencyKeyOptions?: {key: string, scope: 'run'|'attempt'|'global', ...}, ...}",
      .status = 202,
      .reply =
          "{id: string, runCount: integer, isCached: boolean, idempotencyKey?: string}",
      .also = "422 507" },
    { HTTP_POST_, "/api/v3/batches/{batchId}/items",
      .id = "stream_batch_items_v3", .summary = "Stream the items of a batch",
      .body = "string",
      .takes = "application/x-ndjson",
      .reply =
          "{id: string, itemsAccepted: integer, itemsDeduplicated: integer, sealed: "
          "boolean, enqueuedCount?: integer, expectedCount?: integer, runCount?: integer}",
      .also = "409 415 422 507" },
    { HTTP_GET_, "/api/v1/batches/{batchId}",
      .id = "retrieve_batch_v1", .summary = "Retrieve a batch, as SDK 3.x does",
      .reply =
          "{id: string, status: string, idempotencyKey?: string, createdAt: datetime, "
          "updatedAt: datetime, runCount: integer, runs: string[]}" },
    { HTTP_GET_, "/api/v2/batches/{batchId}",
      .id = "retrieve_batch_v2", .summary = "Retrieve a batch",
      .reply =
          "{id: string, status: string, idempotencyKey?: string, createdAt: datetime, "
          "updatedAt: datetime, runCount: integer, runs: string[], successfulRunCount?: "
          "integer, failedRunCount?: integer, processing: {completedAt?: datetime, "
          "errors: {index: integer, taskIdentifier: string, error: string, errorCode: "
          "string}[]}}" },
    { HTTP_GET_, "/api/v1/batches/{batchId}/results",
      .id =
          "retrieve_batch_results_v1", .summary = "What the finished runs of a batch "
          "gave back",
      .reply = "{id: string, items: RunResult[]}",
      .also = "422" },
    { 0 },
};
/* clang-format on */

const struct schema batches_schemas[] = {
    { "BatchCall", "{items: BatchItem[], parentRunId?: string, resumeParentOnCompletion?:"
                   " boolean, dependentAttempt?: string|null, ...}" },
    { "BatchItem", "{task: string, payload?: any, context?: any, options?: TriggerOptions,"
                   " ...}" },
    { "BatchRun", "{id: string, taskIdentifier: string, isCached: boolean, idempotencyKey?:"
                  " string}" },
    { 0 },
};
