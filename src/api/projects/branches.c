/* branches.c - the routes that create, list and archive preview branches.
 *
 * Creating a branch that exists returns it: the official CLI does so for every deployment.
 * An archived branch cannot be restored: its unfinished runs are canceled and it leaves
 * memory (retired.c). Its name can be used for a new branch, which has none of the old
 * runs. Retention removes the rest of an archived branch from the store. Until then the
 * branch still counts toward a limit, because it takes an environment number, a document
 * and an account in memory. */
#include "accounts/account_writer.h"
#include "accounts/branch.h"
#include "api/projects/projects.h"
#include "api/request/project.h"
#include "api/request/request_log.h"
#include "base/log.h"
#include "base/mem.h"

#include "api/request/route.h"

enum { ARCHIVED_FOR_EACH = 50 }; /* archived branches per allowed branch */

struct branching {
    struct api_call *call;
    const struct project *project;
    char name[BRANCH_NAME_MAX + 1];
    char id[ID_MAX]; /* of the archived branch */
    struct account_write write;
};

static struct account *preview_of(struct accounts *accounts, const struct project *project)
{
    return accounts_environment(accounts, project, ENVIRONMENT_PREVIEW);
}

/* ---- the list ---- */

static json_t *show(const struct account *branch)
{
    char created[TIME_TEXT_LEN + 1];
    text_from_time(branch->created_at, created);
    return json_pack("{s:s, s:s, s:s, s:s, s:b}", "id", branch->id, "name", branch->branch,
                     "createdAt", created, "updatedAt", created, "isPaused", 0);
}

enum err branch_list(struct api_call *call)
{
    const struct project *project;
    struct accounts *accounts = api_accounts(call->api);
    enum err refused = project_find(call, call->params[0], &project);
    if (refused)
        return refused;
    json_t *array = json_array();
    for (struct account *a = NULL; (a = accounts_next(accounts, a));)
        if (a->parent && a->project == project && !a->archived)
            json_array_append_new(array, show(a));
    api_reply_value(call, 200, json_pack("{s:o}", "branches", array));
    return OK;
}

/* ---- the body of create and archive ---- */

static enum err check_body(struct api_call *call, const json_t *body, char *name)
{
    const json_t *env = json_object_get(body, "env");
    const json_t *branch = json_object_get(body, "branch");
    struct slice text = { json_string_value(branch), json_string_length(branch) };

    if (!json_is_string(env) || strcmp(json_string_value(env), "preview") != 0)
        return explain(&call->why, ERR_INVALID,
                       "Invalid request body: env must be \"preview\"; other environments "
                       "have no branches here");
    if (!json_is_string(branch))
        return explain(&call->why, ERR_INVALID,
                       "Invalid request body: branch must be a string");
    text = branch_name_clean(text);
    if (!branch_name_is_right(text))
        return explain(&call->why, ERR_INVALID,
                       "Invalid request body: branch must be a name that Git allows, of at "
                       "most %d bytes",
                       BRANCH_NAME_MAX);
    snprintf(name, BRANCH_NAME_MAX + 1, "%.*s", SLICE_ARG(text));
    return OK;
}

static enum err branching_begin(struct api_call *call,
                                enum err (*decide)(struct account_write *,
                                                   struct accounts *, struct draft *),
                                void (*done)(struct account_write *, enum err))
{
    const struct project *project;
    char name[BRANCH_NAME_MAX + 1];
    json_t *body;
    enum err refused = api_read_json(call, &body);
    if (refused)
        return refused;
    refused = check_body(call, body, name);
    json_decref(body);
    if (!refused)
        refused = project_find(call, call->params[0], &project);
    if (refused)
        return refused;
    struct branching *op = mem_new(struct branching);
    op->call = call;
    op->project = project;
    memcpy(op->name, name, sizeof(name));
    op->write.decide = decide;
    op->write.done = done;
    call->busy = true;
    account_write_begin(api_options(call->api)->writer, &op->write);
    return OK;
}

static void branching_finish(struct branching *op, enum err status, json_t *body)
{
    struct api_call *call = op->call;
    char actor[ACTOR_TEXT];
    call->why = op->write.why;
    request_log_actor(call, actor);
    log_audit(call->route->path, "by", actor, "project", op->project->ref, "branch",
              op->name, "result", status ? call->why.text : "ok", NULL);
    free(op);
    if (status)
        api_reply_error(call, status);
    else
        api_reply_value(call, 200, body);
}

/* ---- create ---- */

static enum err check_count(struct branching *op, const struct account *preview)
{
    long long most = api_options(op->call->api)->branches_max;
    if (preview->branch_count >= most)
        return explain(
            &op->write.why, ERR_RULE,
            "The project has too many preview branches (%u, max %lld); archive some "
            "(trigger preview archive), or raise the gateway's setting branches",
            preview->branch_count, most);
    if (preview->archived_count >= ARCHIVED_FOR_EACH * most)
        return explain(&op->write.why, ERR_RULE,
                       "The project has too many archived preview branches that are still "
                       "kept (%u, max %lld); wait until retention removes some, or raise "
                       "the gateway's setting branches",
                       preview->archived_count, ARCHIVED_FOR_EACH * most);
    return OK;
}

static enum err decide_create(struct account_write *write, struct accounts *accounts,
                              struct draft *draft)
{
    struct branching *op = container_of(write, struct branching, write);
    struct account *preview = preview_of(accounts, op->project);
    char id[ID_MAX];

    if (!preview)
        return explain(&write->why, ERR_NOT_FOUND, "Environment not found");
    if (accounts_branch(accounts, preview, slice_of(op->name)))
        return OK;
    enum err refused = check_count(op, preview);
    if (refused)
        return refused;
    uint32_t number = accounts_free_number(accounts);
    if (!number)
        return explain(&write->why, ERR_RULE,
                       "Too many environments on this gateway: no branch can be added");
    draft_branch(draft, number, preview, slice_of(op->name), id);
    return OK;
}

static void on_created(struct account_write *write, enum err status)
{
    struct branching *op = container_of(write, struct branching, write);
    struct accounts *accounts = api_accounts(op->call->api);
    json_t *body = NULL;
    if (!status) {
        const struct account *branch = accounts_branch(
            accounts, preview_of(accounts, op->project), slice_of(op->name));
        body = json_pack("{s:s}", "id", branch->id);
    }
    branching_finish(op, status, body);
}

enum err branch_create(struct api_call *call)
{
    return branching_begin(call, decide_create, on_created);
}

/* ---- archive ---- */

static enum err decide_archive(struct account_write *write, struct accounts *accounts,
                               struct draft *draft)
{
    struct branching *op = container_of(write, struct branching, write);
    struct account *preview = preview_of(accounts, op->project);
    struct account *branch =
        preview ? accounts_branch(accounts, preview, slice_of(op->name)) : NULL;
    if (!branch)
        return explain(&write->why, ERR_NOT_FOUND, "Branch not found");
    memcpy(op->id, branch->id, ID_MAX);
    draft_archive(draft, branch);
    return OK;
}

static void on_archived(struct account_write *write, enum err status)
{
    struct branching *op = container_of(write, struct branching, write);
    json_t *body = status ? NULL
                          : json_pack("{s:b, s:{s:s, s:s}}", "success", 1, "branch", "id",
                                      op->id, "name", op->name);
    branching_finish(op, status, body);
}

enum err branch_archive(struct api_call *call)
{
    return branching_begin(call, decide_archive, on_archived);
}
