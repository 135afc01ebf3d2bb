/* call.c - creates and frees API calls, and chooses the environment of each.
 *
 *   dispatch.c creates it ─► the handler uses parts (parts.h) ─► reply.c sends, frees */
#include "api/request/call.h"

#include "accounts/branch.h"
#include "api/request/parts.h"
#include "api/request/quotas.h"
#include "base/mem.h"

/* ---- its life ---- */

struct api_call *api_call_create(struct api *api, struct exchange *x)
{
    struct api_call *call = mem_new(struct api_call);
    call->api = api;
    call->x = x;
    list_init(&call->held);
    list_append(&api->calls, &call->link);
    if (slice_is(http_header(x, "x-trigger-api-version"), "2025-07-16"))
        call->vocabulary = VOCABULARY_B;
    x->call = call;
    return call;
}

void api_hold(struct api_call *call, void (*on_drain)(struct api_call *call))
{
    call->on_drain = on_drain;
    list_append(&call->api->held, &call->held);
}

void api_call_free(struct api_call *call)
{
    list_remove(&call->held);
    list_remove(&call->link);
    quotas_leave(call);
    if (call->env)
        environment_release(call->env);
    identity_unref(call->identity);
    buf_finish(&call->headers);
    buf_finish(&call->text);
    buf_finish(&call->kept);
    bytes_unref(call->why_full);
    ignored_finish(&call->ignored);
    free(call->query);
    free(call);
}

void api_call_end(struct api_call *call)
{
    call->x->call = NULL;
    api_call_free(call);
}

/* ---- which environment ---- */

/* A key of preview needs the header. It has no effect with any other key. */
enum err api_choose_branch(struct api *api, struct slice header, struct identity **identity,
                           struct failure *why)
{
    struct account *preview = (*identity)->account;
    if (!preview || preview->type != ENVIRONMENT_PREVIEW || preview->parent)
        return OK;
    if ((*identity)->kind != CREDENTIAL_SECRET_KEY)
        return explain(why, ERR_UNAUTHORIZED, "Invalid Public Access Token");
    struct slice name = branch_name_clean(slice_trim(header));
    if (!name.len)
        return explain(why, ERR_UNAUTHORIZED,
                       "x-trigger-branch header required for preview env");
    struct account *branch = accounts_branch(api->accounts, preview, name);
    if (!branch)
        return explain(why, ERR_UNAUTHORIZED, "No matching branch env");
    struct identity *chosen = identity_on_branch(*identity, branch);
    identity_unref(*identity);
    *identity = chosen;
    return OK;
}

enum err api_enter(struct api_call *call)
{
    struct slice branch = http_header(call->x, "x-trigger-branch");
    enum err refused = api_choose_branch(call->api, branch, &call->identity, &call->why);
    if (refused)
        return refused;
    if (call->identity->account)
        api_enter_environment(call, call->identity->account);
    return OK;
}

void api_enter_environment(struct api_call *call, struct account *account)
{
    assert(!call->env);
    call->account = account;
    call->env = engine_environment(call->api->engine, account->number);
    environment_hold(call->env);
}
