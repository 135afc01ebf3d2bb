/* folder.h - folders by descriptors: opened, looked at, synced, and removed with all that is in them.
 *
 * A symbolic link is never followed. All of this blocks. */
#pragma once

#include <dirent.h>
#include <stdbool.h>

#include "base/error.h"
#include "base/work.h"

/* Opens the folder of that name in another one, which may be no link. -1: errno says why. */
int folder_open(int above, const char *name);

/* Returns the names in the folder, for closedir; the descriptor stays the caller's. NULL: errno says
 * why. */
DIR *folder_list(int folder);

/* Returns false also when the folder cannot be listed. */
bool folder_is_empty(int folder);

/* Syncs the folder, with what was renamed in it. */
bool folder_sync(int folder);

/* Removes a name in the folder above, whatever it is, and all that is in it; also when its owner
 * works against that. Returns false if something is left because the job must end, which is looked
 * at after each entry (work.h). work NULL: removes all. */
bool folder_remove(int above, const char *name, const struct work *work);

/* Returns "folder/name", to be freed. */
char *folder_path(const char *folder, const char *name);

/* Splits the path without slashes at its end into the folder above and the name. Both are the
 * caller's. */
void folder_split(const char *path, char **above, char **name);
