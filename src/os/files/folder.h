/* folder.h - opens, lists, syncs and removes folders by their descriptors.
 *
 * Symbolic links are never followed. All functions block. */
#pragma once

#include <dirent.h>
#include <stdbool.h>

#include "base/error.h"
#include "base/work.h"

/* Opens a folder in another one; it must not be a link. Returns -1 and sets errno on
 * failure. */
int folder_open(int above, const char *name);

/* Returns the names in the folder, to be closed by closedir; NULL, with errno, on failure.
 * The descriptor stays the caller's. */
DIR *folder_list(int folder);

/* Also returns false if the folder cannot be listed. */
bool folder_is_empty(int folder);

/* Syncs the folder, including renames in it. */
bool folder_sync(int folder);

/* Removes an entry of any kind from the folder above, with everything in it. The owner of
 * the files cannot prevent this. Checks work_may_continue (work.h) after each entry;
 * returns false if something is left because the job must end. work NULL: no check. */
bool folder_remove(int above, const char *name, const struct work *work);

/* Returns "folder/name", to be freed by the caller. */
char *folder_path(const char *folder, const char *name);

/* Splits the path, ignoring trailing slashes, into the folder above and the name. The
 * caller frees both. */
void folder_split(const char *path, char **above, char **name);
