/* bundle_names.h - checks the names in an archive and collects them.
 *
 * A name consists of parts with one slash between them: "src/index.mjs". "./" may precede
 * it, and a slash may follow the name of a folder. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/slice.h"
#include "base/table.h"

struct bundle_names {
    struct table table; /* of files and folders, by name */
    uint32_t max, files, folders;
};

void bundle_names_init(struct bundle_names *names, uint32_t max);
void bundle_names_finish(struct bundle_names *names);

/* Returns the name without "./" and a trailing slash; empty: the root folder. ERR_INVALID
 * with the reason. */
enum err bundle_name_read(const char *text, struct slice *name, struct failure *why);

/* Adds a name and its parent folders. ERR_INVALID: the name exists already, as a file or as
 * another kind. ERR_TOO_LARGE: too many names. */
enum err bundle_names_add(struct bundle_names *names, struct slice name, bool is_folder,
                          struct failure *why);
