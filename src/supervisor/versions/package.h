/* package.h - package.json of a version: the members that matter to the step that installs. */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/error.h"

/* ERR_INVALID: it is not a JSON object. */
enum err package_has_dependencies(struct slice text, bool *has, struct failure *why);

/* Appends it without "workspaces". The CLI keeps that member, whose folders are not in a bundle, and
 * bun installs nothing then ("Workspace not found"). False: it has no such member, and nothing was
 * appended. */
bool package_without_workspaces(struct slice text, struct buf *out);
