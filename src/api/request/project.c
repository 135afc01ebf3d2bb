/* project.c - finds the environment that ref, slug and x-trigger-branch name. */
#include "api/request/project.h"

#include "accounts/branch.h"
#include "api/request/unread.h"

enum err project_find(struct api_call *call, struct slice ref,
                      const struct project **project)
{
    const struct project *found = accounts_project(api_accounts(call->api), ref);
    if (call->account && found != call->account->project)
        return explain(&call->why, ERR_INVALID,
                       "Invalid project ref for this API key. A secret key belongs to one "
                       "project; use its ref, or another key.");
    if (!call->account && (!found || !user_sees(call->identity->user, found)))
        return explain(&call->why, ERR_NOT_FOUND, "Project not found");
    *project = found;
    return OK;
}

enum err project_environment(struct api_call *call, const struct project *project,
                             enum environment_type type, struct account **account)
{
    struct accounts *accounts = api_accounts(call->api);
    struct account *found = accounts_environment(accounts, project, type);
    if (!found)
        return explain(&call->why, ERR_NOT_FOUND, "Environment not found");
    if (type == ENVIRONMENT_PREVIEW) {
        struct slice header = http_header(call->x, "x-trigger-branch");
        struct slice branch = branch_name_clean(slice_trim(header));
        if (branch.len && !(found = accounts_branch(accounts, found, branch)))
            return explain(&call->why, ERR_NOT_FOUND, "Branch not found");
    }
    unread_report_branch(call, found);
    *account = found;
    return OK;
}

enum err project_find_environment(struct api_call *call, struct slice ref,
                                  struct slice slug, struct account **account)
{
    const struct project *project;
    enum environment_type type;
    enum err refused = project_find(call, ref, &project);
    if (refused)
        return refused;
    bool known = environment_type_from_slug(slug, &type) == OK;
    if (!call->account && !known)
        return explain(&call->why, ERR_NOT_FOUND, "Environment not found");
    if (!call->account)
        return project_environment(call, project, type, account);
    if (!known || type != call->account->type)
        return explain(&call->why, ERR_INVALID,
                       "Invalid environment slug for this API key. A secret key belongs to "
                       "one environment: this one is of %s.",
                       environment_path_slug(call->account->type));
    *account = call->account;
    return OK;
}
