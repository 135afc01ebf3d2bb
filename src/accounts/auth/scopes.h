/* scopes.h - what one scope of a public token grants. */
#pragma once

#include <stdbool.h>

#include "base/slice.h"

/* Returns true if the scope grants action on type:id; id absent: on the type as a whole.
 *
 * scope is action[:type[:id]]; the id may contain colons. "admin" alone grants everything,
 * the action "*" any action, the type "all" any type, and a missing id any id. A malformed
 * scope grants nothing. */
bool scope_grants(struct slice scope, const char *action, const char *type,
                  struct slice id);

/* Returns true if the scope grants action on at least one thing of that type. */
bool scope_grants_some(struct slice scope, const char *action, const char *type);
