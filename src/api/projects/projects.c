/* projects.c - the table of project routes, and the handlers that list and retrieve.
 *
 * They show the organizations and projects of a personal token's user. */
#include "api/projects/projects.h"

#include "api/request/project.h"
#include "api/request/route.h"

enum { NO_BODY = 4096, NAME_BODY = 16 * 1024, BRANCH_BODY = 64 * 1024 };

static enum err list_organizations(struct api_call *call)
{
    const struct list *all = accounts_organizations(api_accounts(call->api));
    json_t *array = json_array();
    list_each (link, all) {
        const struct organization *one = container_of(link, struct organization, link);
        if (user_is_in(call->identity->user, one))
            json_array_append_new(array, organization_show(one));
    }
    api_reply_value(call, 200, array);
    return OK;
}

static json_t *projects_of(const struct api_call *call,
                           const struct organization *organization)
{
    return projects_show(api_accounts(call->api), call->identity->user, organization);
}

static enum err list_projects(struct api_call *call)
{
    api_reply_value(call, 200, projects_of(call, NULL));
    return OK;
}

static enum err list_projects_of(struct api_call *call)
{
    const struct organization *asked =
        accounts_organization(api_accounts(call->api), call->params[0]);
    if (!asked || !user_is_in(call->identity->user, asked))
        return explain(&call->why, ERR_NOT_FOUND, "Organization not found");
    api_reply_value(call, 200, projects_of(call, asked));
    return OK;
}

static enum err retrieve_project(struct api_call *call)
{
    const struct project *project;
    enum err refused = project_find(call, call->params[0], &project);
    if (!refused)
        api_reply_value(call, 200, project_show(project));
    return refused;
}

#define PROJECTS "/api/v1/projects"

/* clang-format off */
static const struct route routes[] = {
    { .method = HTTP_GET_, .path = "/api/v1/orgs",
      .auth = AUTH_PERSONAL, .body_limit = NO_BODY, .handle = list_organizations,
      .id = "list_orgs_v1", .summary = "List organizations",
      .reply = "Organization[]" },
    { .method = HTTP_POST_, .path = "/api/v1/orgs",
      .auth = AUTH_PERSONAL, .body_limit = NAME_BODY, .handle = organization_create,
      .claims = true, .id = "create_org_v1", .summary = "Create an organization, if users may",
      .body = "{title: string, ...}",
      .reply = "Organization",
      .also = "422" },
    { .method = HTTP_GET_, .path = "/api/v1/orgs/{organizationId}/projects",
      .auth = AUTH_PERSONAL, .body_limit = NO_BODY, .handle = list_projects_of,
      .id = "list_org_projects_v1", .summary = "List the projects of an organization",
      .reply = "Project[]" },
    { .method = HTTP_POST_, .path = "/api/v1/orgs/{organizationId}/projects",
      .auth = AUTH_PERSONAL, .body_limit = NAME_BODY, .handle = project_create,
      .claims = true, .id = "create_project_v1", .summary = "Create a project with its four environments",
      .body = "{name: string, ...}",
      .reply = "Project",
      .also = "422" },
    { .method = HTTP_GET_, .path = PROJECTS,
      .auth = AUTH_PERSONAL, .body_limit = NO_BODY, .handle = list_projects,
      .id = "list_projects_v1", .summary = "List projects",
      .reply = "Project[]" },
    { .method = HTTP_GET_, .path = PROJECTS "/runtimes",
      .auth = AUTH_PERSONAL, .body_limit = NO_BODY, .handle = project_runtimes,
      .id = "list_project_runtimes_v1", .summary = "The runtimes of the current deployments of prod",
      .reply = "ProjectRuntime[]" },
    { .method = HTTP_PATCH_, .path = PROJECTS "/{projectRef}",
      .auth = AUTH_PERSONAL, .body_limit = NAME_BODY, .handle = project_rename,
      .id = "rename_project_v1", .summary = "Rename a project",
      .body = "{name: string, ...}",
      .reply = "{id: string, name: string}" },
    { .method = HTTP_GET_, .path = PROJECTS "/{projectRef}",
      .auth = AUTH_PERSONAL, .body_limit = NO_BODY, .handle = retrieve_project,
      .id = "retrieve_project_v1", .summary = "Retrieve a project",
      .reply = "Project" },
    { .method = HTTP_GET_, .path = PROJECTS "/{projectRef}/branches",
      .auth = AUTH_PERSONAL, .body_limit = NO_BODY, .handle = branch_list,
      .id = "list_branches_v1", .summary = "List preview branches",
      .reply = "{...}" },
    { .method = HTTP_POST_, .path = PROJECTS "/{projectRef}/branches",
      .auth = AUTH_PERSONAL, .body_limit = BRANCH_BODY, .handle = branch_create,
      .id = "upsert_branch_v1", .summary = "Create a preview branch",
      .body = "{env: 'preview', branch: string, git?: {...}, ...}",
      .reply = "{id: string, ...}",
      .also = "409 422" },
    { .method = HTTP_POST_, .path = PROJECTS "/{projectRef}/branches/archive",
      .auth = AUTH_PERSONAL, .body_limit = BRANCH_BODY, .handle = branch_archive,
      .id = "archive_branch_v1", .summary = "Archive a preview branch",
      .body = "{env: 'preview', branch: string, ...}",
      .reply = "{...}",
      .also = "409 422" },
    { 0 },
};
/* clang-format on */

static const struct schema schemas[] = {
    { "Organization", "{id: string, title: string, slug: string, createdAt: datetime}" },
    { "Project", "{id: string, externalRef: string, name: string, slug: string, createdAt:"
                 " datetime, organization: Organization}" },
    { "ProjectRuntime",
      "{organization: {title: string, slug: string}, project: {name: string, slug: string, "
      "externalRef: string}, environment: {slug: string}, deployment: {runtime: string | "
      "null, runtimeVersion: string | null, nodeMajor: integer | null, deployedAt: "
      "datetime "
      "| null, shortCode: string} | null}" },
    { 0 },
};

const struct area projects_area = {
    .tag = "projects", .is_for_users = true, .routes = routes, .schemas = schemas
};
