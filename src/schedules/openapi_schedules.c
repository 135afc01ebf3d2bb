/* openapi_schedules.c - the operations of schedules and time zones. */
#include "call/operation.h"

/* clang-format off */
const struct operation schedules_operations[] = {
    { HTTP_GET_, "/api/v1/schedules",
      .id = "list_schedules_v1", .summary = "List schedules",
      .query = "page?: integer, perPage?: integer",
      .reply =
          "{data: ScheduleObject[], pagination: {currentPage: integer, totalPages: "
          "integer, count: integer}}" },
    { HTTP_POST_, "/api/v1/schedules",
      .id = "create_schedule_v1", .summary = "Create a schedule",
      .body =
          "{task: string, cron: string, deduplicationKey: string, externalId?: string, "
          "timezone?: string, window?: string, ...}",
      .reply = "ScheduleObject",
      .also = "422 507" },
    { HTTP_GET_, "/api/v1/schedules/{id}",
      .id = "get_schedule_v1", .summary = "Retrieve a schedule",
      .reply = "ScheduleObject" },
    { HTTP_PUT_, "/api/v1/schedules/{id}",
      .id = "update_schedule_v1", .summary = "Update a schedule",
      .body =
          "{task: string, cron: string, externalId?: string, timezone?: string, "
          "window?: string, ...}",
      .reply = "ScheduleObject",
      .also = "422 507" },
    { HTTP_DELETE_, "/api/v1/schedules/{id}",
      .id = "delete_schedule_v1", .summary = "Delete a schedule",
      .reply = "{id: string}",
      .also = "422" },
    { HTTP_POST_, "/api/v1/schedules/{id}/activate",
      .id = "activate_schedule_v1", .summary = "Activate a schedule",
      .reply = "ScheduleObject",
      .also = "422" },
    { HTTP_POST_, "/api/v1/schedules/{id}/deactivate",
      .id = "deactivate_schedule_v1", .summary = "Deactivate a schedule",
      .reply = "ScheduleObject",
      .also = "422" },
    { HTTP_GET_, "/api/v1/timezones",
      .id = "get_timezones_v1", .summary = "List the time zones that schedules may name",
      .query = "excludeUtc?: string",
      .reply = "GetTimezonesResult" },
    { 0 },
};
/* clang-format on */

const struct schema schedules_schemas[] = {
    { "ScheduleObject",
      "{id: string, type: 'IMPERATIVE'|'DECLARATIVE', task: string, active:"
      " boolean, deduplicationKey?: string|null, externalId?: string|null,"
      " generator: {type: 'CRON', expression: string, description: string},"
      " timezone: string, window?: string, nextRun?: datetime|null,"
      " nextRunEffectiveAt?: datetime|null, environments: {id: string, type:"
      " string, slug?: string, branchName?: string|null, userName?: string}[]}" },
    { "GetTimezonesResult", "{timezones: string[]}" },
    { 0 },
};
