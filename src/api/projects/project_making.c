/* project_making.c - users create and rename projects, and create organizations.
 *
 *   name ─► checked ─► account_writer: counted, drafted, written ─► in memory ─► shown
 *
 * The operator sets how many there may be (user-projects, user-organizations). A project
 * takes four environment numbers forever, so its limit is checked when the write has its
 * turn: two calls at the same time cannot exceed it. */
#include "accounts/account_writer.h"
#include "api/projects/projects.h"
#include "api/request/project.h"
#include "api/request/request_log.h"
#include "api/request/route.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/vault/secret.h"

enum { SLUG_TAIL = 6 }; /* characters of an id, appended to a slug that is taken */

struct making {
    struct api_call *call;
    char name[ACCOUNT_NAME_MAX + 1];
    char organization[ID_MAX];                   /* of the project */
    char ref[PROJECT_REF_MAX];                   /* of the project */
    char slug[ACCOUNT_NAME_MAX + SLUG_TAIL + 2]; /* of the new organization */
    struct claim claim; /* for the request id; this struct owns its key */
    struct account_write write;
};

static struct accounts *accounts_of(const struct making *op)
{
    return api_accounts(op->call->api);
}

/* Reads the member that the call is about, a name for people. */
static enum err read_name(struct api_call *call, const char *member, char *name)
{
    json_t *body;
    enum err refused = api_read_json(call, &body);
    if (refused)
        return refused;
    const json_t *value = json_object_get(body, member);
    struct slice text =
        slice_trim((struct slice){ json_string_value(value), json_string_length(value) });
    if (json_is_string(value) && account_name_is_right(text))
        snprintf(name, ACCOUNT_NAME_MAX + 1, "%.*s", SLICE_ARG(text));
    else
        refused = explain(&call->why, ERR_INVALID,
                          "Invalid request body: %s must be a string of 1 to %d bytes "
                          "without control or invisible characters",
                          member, ACCOUNT_NAME_MAX);
    json_decref(body);
    return refused;
}

/* Checks the caller again: by the turn of this write, the token may have expired or the
 * user left. */
static enum err check_caller(struct making *op, int64_t now_ms)
{
    if (!identity_has_ended(op->call->identity, now_ms))
        return OK;
    return explain(&op->write.why, ERR_UNAUTHORIZED, "%s", identity_ended_reason);
}

static struct making *making_create(struct api_call *call, const char *name)
{
    struct making *op = mem_new(struct making);
    op->call = call;
    memcpy(op->name, name, sizeof(op->name));
    return op;
}

static void project_making_begin(struct making *op,
                                 enum err (*decide)(struct account_write *,
                                                    struct accounts *, struct draft *),
                                 void (*done)(struct account_write *, enum err))
{
    op->write.decide = decide;
    op->write.done = done;
    op->call->busy = true;
    account_write_begin(api_options(op->call->api)->writer, &op->write);
}

/* Makes a repeated request return what the first one created. kind: what; inside: in
 * what. */
static void claim_request(struct making *op, const char *kind, const char *inside)
{
    if (api_claim_for_user(op->call, kind, inside, &op->claim))
        op->write.claim = &op->claim;
}

/* Replies. Takes ownership of body, which is shown if status is OK. */
static void project_making_finish(struct making *op, enum err status, json_t *body)
{
    struct api_call *call = op->call;
    char actor[ACTOR_TEXT];
    call->why = op->write.why;
    request_log_actor(call, actor);
    log_audit(call->route->path, "by", actor, op->slug[0] ? "organization" : "project",
              op->slug[0] ? op->slug : op->ref, "name", op->name, "result",
              status ? call->why.text : "ok", NULL);
    bytes_unref(op->claim.key);
    free(op);
    if (status)
        api_reply_error(call, status);
    else
        api_reply_value(call, 200, body);
}

/* ---- creating a project ---- */

/* Finds an organization of the user. */
static enum err find_organization(struct api_call *call, struct slice slug_or_id,
                                  const struct organization **found, struct failure *why)
{
    *found = accounts_organization(api_accounts(call->api), slug_or_id);
    if (*found && user_is_in(call->identity->user, *found))
        return OK;
    return explain(why, ERR_NOT_FOUND, "Organization not found");
}

static enum err check_projects(struct making *op, const struct organization *organization)
{
    long long count = 0, most = api_options(op->call->api)->user_projects;
    const struct list *all = accounts_projects(accounts_of(op));
    list_each (link, all)
        count += container_of(link, struct project, link)->organization == organization;
    if (!most)
        return explain(&op->write.why, ERR_RULE,
                       "Users cannot create projects here; use runcast project create, or "
                       "raise the gateway's setting user-projects");
    if (count >= most)
        return explain(&op->write.why, ERR_RULE,
                       "The organization's users have created too many projects (%lld, max "
                       "%lld); raise the gateway's setting user-projects",
                       count, most);
    return OK;
}

static enum err decide_project(struct account_write *write, struct accounts *accounts,
                               struct draft *draft)
{
    struct making *op = container_of(write, struct making, write);
    const struct organization *organization;
    char keys[ENVIRONMENT_TYPES][SECRET_KEY_MAX];
    enum err refused = check_caller(op, draft->now_ms);
    refused = refused ? refused
                      : find_organization(op->call, slice_of(op->organization),
                                          &organization, &write->why);
    refused = refused ? refused : check_projects(op, organization);
    if (refused)
        return refused;
    uint32_t number = accounts_free_number(accounts);
    if (!number)
        return explain(&write->why, ERR_RULE,
                       "Too many environments on this gateway: no project can be added");
    bootstrap_generate_ref(op->ref);
    memcpy(op->claim.owner, op->ref, sizeof(op->claim.owner)); /* a random ref is shorter */
    draft_whole_project(draft, organization->id, op->ref, slice_of(op->name), number, keys);
    secret_wipe(keys, sizeof(keys));
    return OK;
}

static void on_project(struct account_write *write, enum err status)
{
    struct making *op = container_of(write, struct making, write);
    const struct project *made =
        accounts_project(accounts_of(op), slice_of(op->claim.owner));
    if (op->claim.taken)
        status = made ? OK : explain(&write->why, ERR_NOT_FOUND, "Project not found");
    project_making_finish(op, status, status ? NULL : project_show(made));
}

enum err project_create(struct api_call *call)
{
    const struct organization *organization;
    char name[ACCOUNT_NAME_MAX + 1];
    enum err refused = find_organization(call, call->params[0], &organization, &call->why);
    refused = refused ? refused : read_name(call, "name", name);
    if (refused)
        return refused;
    struct making *op = making_create(call, name);
    memcpy(op->organization, organization->id, ID_MAX);
    claim_request(op, "project", op->organization);
    project_making_begin(op, decide_project, on_project);
    return OK;
}

/* ---- renaming a project ---- */

static enum err decide_rename(struct account_write *write, struct accounts *accounts,
                              struct draft *draft)
{
    struct making *op = container_of(write, struct making, write);
    const struct project *project = accounts_project(accounts, slice_of(op->ref));
    enum err refused = check_caller(op, draft->now_ms);
    if (refused)
        return refused;
    if (!project || !user_sees(op->call->identity->user, project))
        return explain(&write->why, ERR_NOT_FOUND, "Project not found");
    draft_rename_project(draft, project, slice_of(op->name));
    return OK;
}

static void on_renamed(struct account_write *write, enum err status)
{
    struct making *op = container_of(write, struct making, write);
    const struct project *project =
        status ? NULL : accounts_project(accounts_of(op), slice_of(op->ref));
    json_t *body =
        project ? json_pack("{s:s, s:s}", "id", project->id, "name", op->name) : NULL;
    project_making_finish(op, status, body);
}

enum err project_rename(struct api_call *call)
{
    const struct project *project;
    char name[ACCOUNT_NAME_MAX + 1];
    enum err refused = project_find(call, call->params[0], &project);
    refused = refused ? refused : read_name(call, "name", name);
    if (refused)
        return refused;
    struct making *op = making_create(call, name);
    memcpy(op->ref, project->ref, PROJECT_REF_MAX);
    project_making_begin(op, decide_rename, on_renamed);
    return OK;
}

/* ---- creating an organization ---- */

static enum err check_organizations(struct making *op)
{
    long long count = 0, most = api_options(op->call->api)->user_organizations;
    const struct list *all = accounts_organizations(accounts_of(op));
    list_each (link, all)
        count += user_is_in(op->call->identity->user,
                            container_of(link, struct organization, link));
    if (count >= most)
        return explain(&op->write.why, ERR_RULE,
                       "You are in too many organizations to create another (%lld, max "
                       "%lld); raise the gateway's setting user-organizations",
                       count, most);
    return OK;
}

/* Makes a slug from the name. If it is taken, appends the end of an id. */
static void choose_slug(struct making *op, const struct accounts *accounts, int64_t now_ms)
{
    char id[ID_MAX];
    size_t len;
    account_make_slug(slice_of(op->name), op->slug);
    if (!accounts_organization((struct accounts *)accounts, slice_of(op->slug)))
        return;
    text_make_id("org", now_ms, id);
    len = strlen(op->slug);
    snprintf(op->slug + len, sizeof(op->slug) - len, "-%s", id + strlen(id) - SLUG_TAIL);
}

/* Drafts the organization with its creator as the first user: the same person, by the same
 * address. */
static enum err decide_organization(struct account_write *write, struct accounts *accounts,
                                    struct draft *draft)
{
    struct making *op = container_of(write, struct making, write);
    const struct user *user = op->call->identity->user;
    char id[ID_MAX], user_id[ID_MAX];
    choose_slug(op, accounts, draft->now_ms);
    enum err refused = check_caller(op, draft->now_ms);
    refused = refused ? refused : check_organizations(op);
    if (refused)
        return refused;
    draft_organization(draft, slice_of(op->name), slice_of(op->slug), id);
    memcpy(op->claim.owner, id, sizeof(id));
    draft_user(draft, id, slice_of(user->name), slice_of(user->email), user_id);
    return OK;
}

static void on_organization(struct account_write *write, enum err status)
{
    struct making *op = container_of(write, struct making, write);
    const struct organization *made =
        accounts_organization(accounts_of(op), slice_of(op->claim.owner));
    if (op->claim.taken)
        status = made ? OK : explain(&write->why, ERR_NOT_FOUND, "Organization not found");
    project_making_finish(op, status, status ? NULL : organization_show(made));
}

/* Returns 422 if users may create none: the CLI prints the message of a 422, but not of a
 * 404. */
enum err organization_create(struct api_call *call)
{
    char name[ACCOUNT_NAME_MAX + 1];
    if (!api_options(call->api)->user_organizations)
        return explain(&call->why, ERR_RULE,
                       "Users cannot create organizations here; use runcast org create, or "
                       "raise the gateway's setting user-organizations");
    enum err refused = read_name(call, "title", name);
    if (refused)
        return refused;
    struct making *op = making_create(call, name);
    claim_request(op, "organization", "");
    project_making_begin(op, decide_organization, on_organization);
    return OK;
}
