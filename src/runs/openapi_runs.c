/* openapi_runs.c - the operations of runs. */
#include "call/operation.h"

/* clang-format off */
const struct operation runs_operations[] = {
    { HTTP_POST_, "/api/v1/tasks/{taskId}/trigger",
      .id = "trigger_task_v1", .summary = "Trigger a task",
      .body = "TriggerTask",
      .reply = "{id: string, isCached: boolean}",
      .also = "409 422 507" },
    { HTTP_GET_, "/api/v1/runs",
      .id = "list_runs_v1", .summary = "List runs",
      .query =
          "filter[status]?: string, filter[taskIdentifier]?: string, filter[version]?: "
          "string, filter[tag]?: string, filter[bulkAction]?: string, filter[schedule]?: "
          "string, filter[isTest]?: 'true'|'false', filter[createdAt][from]?: string, "
          "filter[createdAt][to]?: string, filter[createdAt][period]?: string, "
          "filter[batch]?: string, filter[queue]?: string, filter[machine]?: string, "
          "filter[region]?: string, page[size]?: integer(1..100), page[after]?: string, "
          "page[before]?: string",
      .reply = "ListRunsResult" },
    { HTTP_GET_, "/api/v1/projects/{projectRef}/runs",
      .id = "list_project_runs_v1", .summary = "List runs of a project",
      .query =
          "filter[status]?: string, filter[taskIdentifier]?: string, filter[version]?: "
          "string, filter[tag]?: string, filter[bulkAction]?: string, filter[schedule]?: "
          "string, filter[isTest]?: 'true'|'false', filter[createdAt][from]?: string, "
          "filter[createdAt][to]?: string, filter[createdAt][period]?: string, "
          "filter[batch]?: string, filter[queue]?: string, filter[machine]?: string, "
          "filter[region]?: string, page[size]?: integer(1..100), page[after]?: string, "
          "page[before]?: string, filter[env]?: string",
      .reply = "ListRunsResult" },
    { HTTP_GET_, "/api/v3/runs/{runId}",
      .id = "retrieve_run_v3", .summary = "Retrieve a run",
      .reply = "Run" },
    { HTTP_GET_, "/api/v1/runs/{runId}/result",
      .id = "retrieve_run_result_v1", .summary = "What a finished run gave back",
      .reply = "RunResult" },
    { HTTP_POST_, "/api/v2/runs/{runId}/cancel",
      .id = "cancel_run_v2", .summary = "Cancel a run",
      .reply = "RunId" },
    { HTTP_POST_, "/api/v1/runs/{runId}/replay",
      .id = "replay_run_v1", .summary = "Replay a run",
      .body =
          "{payload?: any, payloadType?: 'application/json'|'application/super+json', "
          "metadata?: {...}, tags?: string|string[], queue?: string, concurrencyKey?: "
          "string|number, machine?: string, version?: string, region?: string|null, delay?: "
          "string|number|null, ttl?: string|number, idempotencyKey?: string, idempotencyKeyTTL?: "
          "string, maxAttempts?: integer(1..2147483647), maxDuration?: number, priority?: "
          "number}",
      .reply = "RunId",
      .also = "422 507" },
    { HTTP_POST_, "/api/v1/runs/{runId}/reschedule",
      .id = "reschedule_run_v1", .summary = "Give a delayed run another time",
      .body = "{delay: string|number, ...}",
      .reply = "Run",
      .also = "409 422" },
    { HTTP_POST_, "/api/v1/runs/{runId}/tags",
      .id = "add_run_tags_v1", .summary = "Add tags to a run",
      .body = "{tags: string(1..128)|string(1..128)[], ...}",
      .reply = "{message: string}",
      .also = "422 507" },
    { HTTP_GET_, "/api/v1/runs/{runId}/metadata",
      .id = "get_run_metadata_v1", .summary = "Read the metadata of a run",
      .reply = "{metadata: {...}}" },
    { HTTP_PUT_, "/api/v1/runs/{runId}/metadata",
      .id = "update_run_metadata_v1", .summary = "Replace or change the metadata of a run",
      .body =
          "{metadata?: {...}, operations?: {...}[], parentOperations?: {...}[], "
          "rootOperations?: {...}[], ...}",
      .reply = "{metadata: {...}}",
      .also = "422 507" },
    { HTTP_POST_, "/api/v1/idempotencyKeys/{key}/reset",
      .id = "reset_idempotency_key_v1", .summary = "Free an idempotency key",
      .body = "{taskIdentifier: string, ...}",
      .reply = "{id: string}" },
    { HTTP_GET_, "/api/v1/runs/{runId}/events",
      .id = "list_run_events_v1", .summary = "Spans and logs in the order of their start",
      .reply = "{events: {spanId: string, parentId: string, runId: string, message: string, startTime: string, duration: number, level: string, isError: boolean, ...}[]}" },
    { HTTP_GET_, "/api/v1/runs/{runId}/trace",
      .id = "retrieve_run_trace_v1", .summary = "Spans and logs as a tree, or page by page",
      .query = "page[size]?: string, page[after]?: string",
      .reply = "{trace?: {...}, data?: {...}[], ...}" },
    { HTTP_GET_, "/api/v1/runs/{runId}/spans/{spanId}",
      .id = "retrieve_span_v1", .summary = "One span or log",
      .reply = "{spanId: string, parentId: string, runId: string, message: string, startTime: string, durationMs: number, ...}" },
    { 0 },
};
/* clang-format on */

const struct schema runs_schemas[] = {
    { "RunStatus",
      "'PENDING_VERSION' |'WAITING_FOR_DEPLOY' |'DELAYED' |'QUEUED' |'DEQUEUED'"
      " |'EXECUTING' |'REATTEMPTING' |'FROZEN' |'WAITING' |'COMPLETED'"
      " |'CANCELED' |'FAILED' |'CRASHED' |'INTERRUPTED' |'SYSTEM_FAILURE'"
      " |'EXPIRED' |'TIMED_OUT'" },
    { "RunId", "{id: string}" },
    { "TriggerTask", "{payload?: any, context?: any, options?: TriggerOptions, ...}" },
    { "TriggerOptions",
      "{tags?: string|string[], delay?: string|number|null, ttl?: string|number,"
      " idempotencyKey?: string, idempotencyKeyTTL?: string, idempotencyKeyOptions?:"
      " {key: string, scope: 'run'|'attempt'|'global', ...}, queue?: {name?:"
      " string|null, ...}, concurrencyKey?: string|number, metadata?: any,"
      " maxAttempts?: integer, maxDuration?: number, machine?: string, priority?:"
      " number, payloadType?: string, parentRunId?: string, test?: boolean,"
      " lockToVersion?: string, region?: string|null, resumeParentOnCompletion?: boolean,"
      " payloadSize?: integer, metadataType?: string, externalDeploymentId?: string|null,"
      " parentAttempt?: string|null, dependentAttempt?: string|null, parentBatch?:"
      " string|null, dependentBatch?: string|null, bulkActionId?: string|null, ...}" },
    { "RunItem", "{id: string, status: RunStatus, taskIdentifier: string, number?:"
                 " integer, idempotencyKey?: string, version?: string, region?: string,"
                 " ttl?: string, createdAt: datetime, updatedAt: datetime, queuedAt?:"
                 " datetime, startedAt?: datetime, finishedAt?: datetime,"
                 " delayedUntil?: datetime, expiredAt?: datetime, isQueued: boolean,"
                 " isExecuting: boolean, isWaiting: boolean, isCompleted: boolean,"
                 " isSuccess: boolean, isFailed: boolean, isCancelled: boolean, isTest:"
                 " boolean, tags: string[], costInCents: number, baseCostInCents:"
                 " number, durationMs: number, depth: integer, metadata?: {...},"
                 " taskKind: 'STANDARD', env: {id: string, name: string, user?:"
                 " string}}" },
    { "ListRunsResult", "{data: RunItem[], pagination: CursorPage}" },
    { "RelatedRun",
      "{id: string, status: RunStatus, taskIdentifier: string, number?: integer,"
      " idempotencyKey?: string, version?: string, region?: string, ttl?: string,"
      " createdAt: datetime, updatedAt: datetime, queuedAt?: datetime, startedAt?:"
      " datetime, finishedAt?: datetime, delayedUntil?: datetime, expiredAt?: datetime,"
      " isQueued: boolean, isExecuting: boolean, isWaiting: boolean, isCompleted:"
      " boolean, isSuccess: boolean, isFailed: boolean, isCancelled: boolean, isTest:"
      " boolean, tags: string[], costInCents: number, baseCostInCents: number,"
      " durationMs: number, depth: integer, metadata?: {...}, triggerFunction: string,"
      " batchId?: string}" },
    { "Run", "{id: string, status: RunStatus, taskIdentifier: string, number?: integer,"
             " idempotencyKey?: string, version?: string, region?: string, ttl?:"
             " string, createdAt: datetime, updatedAt: datetime, queuedAt?: datetime,"
             " startedAt?: datetime, finishedAt?: datetime, delayedUntil?: datetime,"
             " expiredAt?: datetime, isQueued: boolean, isExecuting: boolean,"
             " isWaiting: boolean, isCompleted: boolean, isSuccess: boolean, isFailed:"
             " boolean, isCancelled: boolean, isTest: boolean, tags: string[],"
             " costInCents: number, baseCostInCents: number, durationMs: number, depth:"
             " integer, metadata?: {...}, triggerFunction: string, batchId?: string,"
             " schedule?: RunSchedule, waitingFor?: RunWaiting, payload?: any, "
             "payloadPresignedUrl?: string,"
             " output?: any, outputPresignedUrl?: string, error?: {message?: string,"
             " ...}, attemptCount: integer, attempts: any[], relatedRuns: {root?:"
             " RelatedRun, parent?: RelatedRun, children: RelatedRun[]}}" },
    { "RunWaiting",
      "{reason: 'no_worker'|'version'|'storage_quota'|'queue_paused'|'queue_limit'"
      "|'concurrency_key'|'environment_limit'|'delay'|'retry'|'waitpoint', since: "
      "datetime, until?: datetime, limit?: integer, running?: integer, ahead?: integer,"
      " task?: string, message: string}" },
    { "RunSchedule", "{id: string, ...}" },
    { "RunResult",
      "{ok: boolean, id: string, taskIdentifier: string, output?: string,"
      " outputType?: string, error?: {type: string, ...}, usage?: {...}, ...}" },
    { 0 },
};
