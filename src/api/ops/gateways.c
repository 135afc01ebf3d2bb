/* gateways.c - the route that lists the gateways to users of their operator.
 *
 * The first start creates the operator's organization; all others are tenants, and their users
 * get an empty list. */
#include "accounts/accounts.h"
#include "api/ops/gateways_query.h"
#include "api/request/route.h"

enum { NO_BODY = 4096 };

static const struct organization *oldest(const struct accounts *accounts)
{
    const struct organization *found = NULL;
    list_each (link, accounts_organizations(accounts)) {
        const struct organization *one = container_of(link, struct organization, link);
        if (!found || one->created_at < found->created_at)
            found = one;
    }
    return found;
}

static const struct user *user_of(const struct identity *identity)
{
    return identity->granted_by ? identity->granted_by->user : identity->user;
}

static enum err list_gateways(struct api_call *call)
{
    const struct user *user = user_of(call->identity);
    const struct organization *first = oldest(api_accounts(call->api));
    if (user && first && user_is_in(user, first))
        return gateways_list(call, false);
    api_reply_json(call, 200, SLICE("{\"gateways\":[]}"));
    return OK;
}

/* clang-format off */
static const struct route routes[] = {
    { .method = HTTP_GET_, .path = "/api/v1/gateways",
      .auth = AUTH_PERSONAL | AUTH_FOR_USER, .body_limit = NO_BODY, .handle = list_gateways,
      .id = "list_gateways_v1",
      .summary = "The gateways on the database, for users of its first organization",
      .reply = "Gateways" },
    { 0 },
};
/* clang-format on */

static const struct schema schemas[] = {
    { "Gateways", "{gateways: Gateway[]}" },
    { "Gateway", "{name: string, role: 'leads' | 'follows' | 'stands by' | 'down',"
                 " reason?: string, version?: string, since?: datetime,"
                 " lag?: {changes: integer, ms: integer}, peerUrl?: string}" },
    { 0 },
};

const struct area gateways_area = {
    .tag = "gateways", .is_for_users = true, .routes = routes, .schemas = schemas
};
