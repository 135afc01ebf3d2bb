/* bundle_names.h - which names an archive may have, and which it had.
 *
 * A name is parts with one slash between: "src/index.mjs". In front may stand "./", behind
 * that of a folder a slash. */
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

/* The name without "./" and the slash behind it; empty: the folder of all. ERR_INVALID with
 * the reason. */
enum err bundle_name_read(const char *text, struct slice *name, struct failure *why);

/* ERR_INVALID: it is there already as something else, or is a file twice; ERR_TOO_LARGE: one
 * too many. The folders that are its parts are added, too. */
enum err bundle_names_add(struct bundle_names *names, struct slice name, bool is_folder,
                          struct failure *why);
