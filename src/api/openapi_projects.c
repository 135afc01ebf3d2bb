/* openapi_projects.c - the operations of organizations, projects and branches. */
#include "call/operation.h"

/* clang-format off */
const struct operation projects_operations[] = {
    { HTTP_GET_, "/api/v1/orgs",
      .id = "list_orgs_v1", .summary = "List organizations",
      .reply = "Organization[]" },
    { HTTP_GET_, "/api/v1/orgs/{organizationId}/projects",
      .id = "list_org_projects_v1", .summary = "List the projects of an organization",
      .reply = "Project[]" },
    { HTTP_GET_, "/api/v1/projects",
      .id = "list_projects_v1", .summary = "List projects",
      .reply = "Project[]" },
    { HTTP_GET_, "/api/v1/projects/{projectRef}",
      .id = "retrieve_project_v1", .summary = "Retrieve a project",
      .reply = "Project" },
    { HTTP_GET_, "/api/v1/projects/{projectRef}/branches",
      .id = "list_branches_v1", .summary = "List preview branches",
      .reply = "{...}" },
    { HTTP_POST_, "/api/v1/projects/{projectRef}/branches",
      .id = "upsert_branch_v1", .summary = "Create a preview branch",
      .body = "{env: 'preview', branch: string, git?: {...}, ...}",
      .reply = "{id: string, ...}",
      .also = "409 422" },
    { HTTP_POST_, "/api/v1/projects/{projectRef}/branches/archive",
      .id = "archive_branch_v1", .summary = "Archive a preview branch",
      .body = "{env: 'preview', branch: string, ...}",
      .reply = "{...}",
      .also = "409 422" },
    { 0 },
};
/* clang-format on */

const struct schema projects_schemas[] = {
    { "Organization", "{id: string, title: string, slug: string, createdAt: datetime}" },
    { "Project", "{id: string, externalRef: string, name: string, slug: string, createdAt:"
                 " datetime, organization: Organization}" },
    { 0 },
};
