/* program_version.h - the Node that a version names, and the one that executes it.
 *
 * The CLI names a Node for every project, "node-24" unless its owner sets another one, and most
 * versions work as well with another one. So a build refuses only a Node too old for the
 * controllers, and a difference is a hint where something failed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/slice.h"

struct program_version {
    char text[32]; /* "v22.11.0", as the program prints it; "": it was not asked */
};

/* More of its output. */
void program_version_add(struct program_version *version, struct slice text);

/* ERR_RULE with the reason: too old. runtime: as the version names it, "node-24"; program: the path
 * of the program that was asked. */
enum err program_version_check(struct program_version *version, const char *runtime,
                               const char *program, struct failure *why);

/* Writes what to add to the error of a child, "; …". Returns false if the program is the
 * named one. */
bool program_version_hint(const struct program_version *version, const char *runtime,
                          char *out, size_t size);
