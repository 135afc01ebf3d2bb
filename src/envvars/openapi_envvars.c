/* openapi_envvars.c - the operations of environment variables. */
#include "call/operation.h"

/* clang-format off */
const struct operation envvars_operations[] = {
    { HTTP_GET_, "/api/v1/projects/{projectRef}/envvars/{env}",
      .id = "list_project_envvars_v1", .summary = "List variables",
      .reply = "EnvironmentVariable[]" },
    { HTTP_POST_, "/api/v1/projects/{projectRef}/envvars/{env}",
      .id = "create_project_envvar_v1", .summary = "Create a variable",
      .body = "{name: string, value: string, isSecret?: boolean, ...}",
      .reply = "{success: boolean}",
      .also = "409 422 507" },
    { HTTP_POST_, "/api/v1/projects/{projectRef}/envvars/{env}/import",
      .id = "upload_project_envvars_v1", .summary = "Upload variables",
      .body =
          "{variables: {*: string}, parentVariables?: {*: string}, override?: boolean, "
          "isSecret?: boolean, source?: {type: 'user'|'integration', userId?: string, "
          "integration?: string, ...}, ...}",
      .reply = "{success: boolean}",
      .also = "422 507" },
    { HTTP_GET_, "/api/v1/projects/{projectRef}/envvars/{env}/{name}",
      .id = "get_project_envvar_v1", .summary = "Retrieve a variable",
      .reply = "EnvironmentVariable" },
    { HTTP_PUT_, "/api/v1/projects/{projectRef}/envvars/{env}/{name}",
      .id = "update_project_envvar_v1", .summary = "Update a variable",
      .body = "{value: string, ...}",
      .reply = "{success: boolean}",
      .also = "422 507" },
    { HTTP_POST_, "/api/v1/projects/{projectRef}/envvars/{env}/{name}",
      .id = "post_project_envvar_v1", .summary = "Update a variable, as older clients do",
      .body = "{value: string, ...}",
      .reply = "{success: boolean}",
      .also = "422 507" },
    { HTTP_DELETE_, "/api/v1/projects/{projectRef}/envvars/{env}/{name}",
      .id = "delete_project_envvar_v1", .summary = "Delete a variable",
      .reply = "{success: boolean}" },
    { 0 },
};
/* clang-format on */

const struct schema envvars_schemas[] = {
    { "EnvironmentVariable", "{name: string, value: string, isSecret: boolean}" },
    { 0 },
};
