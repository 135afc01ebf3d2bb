/* openapi_queues.c - the operations of queues and bulk actions. */
#include "call/operation.h"

#define QUEUE "/api/v1/queues/{param}"
#define ACTIONS "/api/v1/bulk-actions"

const struct operation queues_operations[] = {
    { .method = HTTP_GET_,
      .path = "/api/v1/queues",
      .id = "list_queues_v1",
      .summary = "List queues",
      .query = "page?: integer(1..4294967295), perPage?: integer(1..4294967295)",
      .reply = "ListQueuesResult" },
    { .method = HTTP_GET_,
      .path = QUEUE,
      .id = "retrieve_queue_v1",
      .summary = "Retrieve a queue",
      .query = "type?: QueueParamType",
      .reply = "QueueItem" },
    { .method = HTTP_POST_,
      .path = QUEUE "/pause",
      .id = "pause_queue_v1",
      .summary = "Pause or resume a queue",
      .body = "{type?: QueueParamType, action: 'pause'|'resume', ...}",
      .reply = "QueueItem",
      .also = "422" },
    { .method = HTTP_POST_,
      .path = QUEUE "/concurrency/override",
      .id = "override_queue_concurrency_v1",
      .summary = "Override the concurrency limit",
      .body = "{type?: QueueParamType, concurrencyLimit: integer(0..100000), ...}",
      .reply = "QueueItem",
      .also = "422" },
    { .method = HTTP_POST_,
      .path = QUEUE "/concurrency/reset",
      .id = "reset_queue_concurrency_v1",
      .summary = "Take the override back",
      .body = "{type?: QueueParamType, ...}",
      .reply = "QueueItem" },
    { .method = HTTP_POST_,
      .path = ACTIONS,
      .id = "create_bulk_action_v1",
      .summary = "Cancel or replay many runs",
      .body = "CreateBulkAction",
      .status = 202,
      .reply = "{id: string}",
      .also = "507" },
    { .method = HTTP_GET_,
      .path = ACTIONS,
      .id = "list_bulk_actions_v1",
      .summary = "List bulk actions",
      .query = "page[size]?: integer(1..100), page[after]?: string, page[before]?: string",
      .reply = "{data: BulkAction[], pagination: CursorPage}" },
    { .method = HTTP_GET_,
      .path = ACTIONS "/{id}",
      .id = "retrieve_bulk_action_v1",
      .summary = "Retrieve a bulk action",
      .reply = "BulkAction" },
    { .method = HTTP_POST_,
      .path = ACTIONS "/{id}/abort",
      .id = "abort_bulk_action_v1",
      .summary = "Abort a bulk action",
      .reply = "{id: string}",
      .also = "409" },
    { 0 },
};

const struct schema queues_schemas[] = {
    { "QueueParamType", "'id'|'task'|'custom'" },
    { "QueueItem",
      "{id: string, name: string, type: 'task'|'custom', running: integer, queued: integer,"
      " paused: boolean, concurrencyLimit: integer|null, concurrency: QueueConcurrency,"
      " version: 'V1'}" },
    { "QueueConcurrency",
      "{current: integer|null, base: integer|null, override: integer|null,"
      " overriddenAt: datetime|null, overriddenBy: string|null}" },
    { "ListQueuesResult",
      "{data: QueueItem[],"
      " pagination: {currentPage: integer, totalPages: integer, count: integer}}" },
    { "CreateBulkAction",
      "{action: 'cancel'|'replay', filter?: BulkFilter, runIds?: string[],"
      " name?: string(0..255), targetRegion?: string(0..255), ...}" },
    { "BulkFilter",
      "{status?: Strings, taskIdentifier?: Strings, version?: Strings, tag?: Strings,"
      " from?: datetime|number, to?: datetime|number, period?: string, schedule?: string,"
      " bulkAction?: string, isTest?: boolean, batch?: string, machine?: Strings,"
      " region?: Strings, queue?: BulkQueue|BulkQueue[], ...}" },
    { "BulkQueue", "{type: 'task'|'custom', name: string, ...}" },
    { "Strings", "string|string[]" },
    { "BulkAction", "{id: string, name?: string, type: 'CANCEL'|'REPLAY',"
                    " status: 'PENDING'|'COMPLETED'|'ABORTED',"
                    " counts: {total: integer, success: integer, failure: integer},"
                    " createdAt: datetime, completedAt?: datetime}" },
    { "CursorPage", "{next?: string, previous?: string}" },
    { 0 },
};
