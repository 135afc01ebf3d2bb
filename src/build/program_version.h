/* program_version.h - the Node that a version names, and the one that executes it.
 *
 * The CLI names a Node for every project, "node-24" unless its owner says otherwise, and most
 * versions do as well with another one. So a build refuses only what is too old for the
 * controllers, and a difference is a hint where something failed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/slice.h"

struct program_version {
    char text[32]; /* "v22.11.0", as the program says; "": it was not asked */
};

/* More of its output. */
void program_version_add(struct program_version *version, struct slice text);

/* ERR_RULE with the reason: too old. runtime: as the version names it, "node-24"; program: the path
 * of what was asked. */
enum err program_version_check(struct program_version *version, const char *runtime,
                               const char *program, struct failure *why);

/* Writes what to add to the error of a child, "; …". False: the program is the one that is named. */
bool program_version_hint(const struct program_version *version, const char *runtime,
                          char *out, size_t size);
