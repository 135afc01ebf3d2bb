/* scopes.c - what one scope of a public token grants. */
#include "auth/scopes.h"

bool scope_grants(struct slice scope, const char *action, const char *type, struct slice id)
{
    struct slice rest = scope, its_action, its_type;
    if (slice_is(scope, "admin"))
        return true;
    if (!slice_split(&rest, ':', &its_action) || !slice_split(&rest, ':', &its_type))
        return false;
    if (!slice_is(its_action, action) && !slice_is(its_action, "*"))
        return false;
    if (!slice_is(its_type, type) && !slice_is(its_type, "all"))
        return false;
    /* An empty id ("read:runs:") is a mistake of whoever signed it, not a wildcard. */
    return !rest.ptr || (id.ptr && id.len && slice_equal(rest, id));
}
