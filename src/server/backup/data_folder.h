/* data_folder.h - folders that are filled, and removed again if that fails.
 *
 * What runcast puts into them is files and one folder of files. All of this blocks. */
#pragma once

#include <stdbool.h>

#include "base/error.h"

/* The folder of that name in another one, which may be no link. -1: errno says why. */
int data_folder_open(int above, const char *name);

/* False also when it cannot be listed. */
bool data_folder_is_empty(int folder);

/* Synced, with what was renamed in it. */
bool data_folder_sync(int folder);

/* Removes the folder, its files and those of the folders in it. What is a link goes, and what it
 * leads to stays. */
void data_folder_remove(int above, const char *name);

/* The path without slashes at its end: the folder above, and the name. Both are the caller's. */
void data_folder_split(const char *path, char **above, char **name);
