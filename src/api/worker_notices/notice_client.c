/* notice_client.c - reads the credential of an upgrade, which call.c leaves to its handler. */
#include "api/worker_notices/notice_client.h"

#include "api/request/served.h"

/* The environment of the key, or the first one that the worker's token serves: there it is
 * counted. Not in a branch, which may be archived while the worker goes on. */
static struct environment *home_of(const struct api_call *call,
                                   const struct identity *identity)
{
    struct account *account = identity->account;
    if (!account && (account = served_next(call->api, identity, NULL)))
        account = account_of_keys(account);
    return account ? served_runs(call->api, account) : NULL;
}

enum err notice_client_identify(struct api_call *call, struct seat *seat,
                                struct identity **identity, struct failure *why)
{
    struct slice header = http_header(call->x, "authorization");
    struct slice branch = http_header(call->x, "x-trigger-branch");
    int64_t now = loop_wall_ms(engine_loop(api_engine(call->api)));
    struct identity *found = NULL;
    enum err refused =
        auth_identify(api_auth(call->api), header, call->x->peer, now, &found, why);

    if (!refused && found->kind != CREDENTIAL_SECRET_KEY &&
        found->kind != CREDENTIAL_WORKER_TOKEN)
        refused = explain(why, ERR_UNAUTHORIZED, "Invalid API key");
    if (!refused)
        refused = api_choose_branch(call->api, branch, &found, why);
    struct environment *home = refused ? NULL : home_of(call, found);
    if (home)
        refused = connection_limit_take(seat, call->api, home, why);
    if (refused)
        identity_unref(found);
    else
        *identity = found;
    return refused;
}
