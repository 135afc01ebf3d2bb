/* scopes.c - matches one scope of a public token against a request. */
#include "accounts/auth/scopes.h"

/* Sets *its_id to the scope's id; absent: any id. */
static bool is_about(struct slice scope, const char *action, const char *type,
                     struct slice *its_id)
{
    struct slice its_action, its_type;
    *its_id = (struct slice){ 0 };
    if (slice_is(scope, "admin"))
        return true;
    if (!slice_split(&scope, ':', &its_action) || !slice_split(&scope, ':', &its_type))
        return false;
    *its_id = scope;
    return (slice_is(its_action, action) || slice_is(its_action, "*")) &&
           (slice_is(its_type, type) || slice_is(its_type, "all"));
}

/* An empty id ("read:runs:") is a mistake of the signer, not a wildcard. */
bool scope_grants(struct slice scope, const char *action, const char *type, struct slice id)
{
    struct slice its_id;
    return is_about(scope, action, type, &its_id) &&
           (!its_id.ptr || (id.ptr && id.len && slice_equal(its_id, id)));
}

bool scope_grants_some(struct slice scope, const char *action, const char *type)
{
    struct slice its_id;
    return is_about(scope, action, type, &its_id) && (!its_id.ptr || its_id.len);
}
