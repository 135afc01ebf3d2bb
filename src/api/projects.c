/* projects.c - what a personal token sees: its user's organizations and projects. */
#include "api/projects.h"

#include "call/project.h"
#include "call/routes.h"

enum { NO_BODY = 4096, BRANCH_BODY = 64 * 1024 };

static json_t *time_of(int64_t unix_ms)
{
    char text[TIME_TEXT_LEN + 1];
    text_from_time(unix_ms, text);
    return json_string(text);
}

static json_t *show_organization(const struct organization *organization)
{
    return json_pack("{s:s, s:s, s:s, s:o}", "id", organization->id, "title",
                     organization->name, "slug", organization->slug, "createdAt",
                     time_of(organization->created_at));
}

static json_t *show_project(const struct project *project)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:o, s:o}", "id", project->id, "externalRef",
                     project->ref, "name", project->name, "slug", project->slug,
                     "createdAt", time_of(project->created_at), "organization",
                     show_organization(project->organization));
}

static enum err list_organizations(struct api_call *call)
{
    const struct list *all = accounts_organizations(api_accounts(call->api));
    json_t *array = json_array();
    list_each (link, all) {
        const struct organization *one = container_of(link, struct organization, link);
        if (user_is_in(call->identity->user, one))
            json_array_append_new(array, show_organization(one));
    }
    api_reply_value(call, 200, array);
    return OK;
}

/* organization NULL: of all that the user is in. */
static json_t *projects_of(const struct api_call *call,
                           const struct organization *organization)
{
    const struct list *all = accounts_projects(api_accounts(call->api));
    json_t *array = json_array();
    list_each (link, all) {
        const struct project *project = container_of(link, struct project, link);
        if (user_sees(call->identity->user, project) &&
            (!organization || project->organization == organization))
            json_array_append_new(array, show_project(project));
    }
    return array;
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
        api_reply_value(call, 200, show_project(project));
    return refused;
}

#define PROJECTS "/api/v1/projects"

/* clang-format off */
const struct route projects_routes[] = {
    { HTTP_GET_,  "/api/v1/orgs",                   AUTH_PERSONAL, NO_BODY,     list_organizations, NULL },
    { HTTP_GET_,  "/api/v1/orgs/:/projects",        AUTH_PERSONAL, NO_BODY,     list_projects_of, NULL },
    { HTTP_GET_,  PROJECTS,                         AUTH_PERSONAL, NO_BODY,     list_projects, NULL },
    { HTTP_GET_,  PROJECTS "/:",                    AUTH_PERSONAL, NO_BODY,     retrieve_project, NULL },
    { HTTP_GET_,  PROJECTS "/:/branches",           AUTH_PERSONAL, NO_BODY,     branch_list, NULL },
    { HTTP_POST_, PROJECTS "/:/branches",           AUTH_PERSONAL, BRANCH_BODY, branch_create, NULL },
    { HTTP_POST_, PROJECTS "/:/branches/archive",   AUTH_PERSONAL, BRANCH_BODY, branch_archive, NULL },
    { 0 },
};
/* clang-format on */
