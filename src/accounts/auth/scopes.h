/* scopes.h - what one scope of a public token grants. */
#pragma once

#include <stdbool.h>

#include "base/slice.h"

/* scope is action[:type[:id]]; the id may contain colons. "admin" alone grants everything,
 * the action "*" is any action, the type "all" any type, no id any id. What is not
 * understood grants nothing. id absent: asked for is the type as a whole. */
bool scope_grants(struct slice scope, const char *action, const char *type,
                  struct slice id);

/* True when the scope grants action on one thing of that type at least. */
bool scope_grants_some(struct slice scope, const char *action, const char *type);
