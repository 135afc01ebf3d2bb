/* data_files.h - the folders of a data directory, or of a copy of it, by descriptors.
 *
 *   top            runcast.db, encryption.key, …
 *   deployments    a folder in it: archives, indexes and logs of versions
 *
 * All of this blocks. */
#pragma once

#include <stdbool.h>

#define DATA_DATABASE "runcast.db"
#define DATA_DEPLOYMENTS "deployments"
#define DATA_KEY "encryption.key"

struct data_files {
    int top;         /* -1: closed */
    int deployments; /* -1: closed, or there is no such folder, and nothing was deployed */
};

void data_files_init(struct data_files *files);
void data_files_close(struct data_files *files);

/* Opens the folder at the path, and the folder of deployments if it is there. Returns false if one
 * of them cannot be opened: errno says why, and top is -1 if it is the first one. */
bool data_files_open(struct data_files *files, const char *path);

/* Opens an empty folder in another one, and makes the folder of deployments in it. Returns false if
 * that fails: errno says why. */
bool data_files_begin(struct data_files *files, int above, const char *name);

/* Where a file of a manifest is: one of the two folders, and its name there. */
const char *data_files_place(const struct data_files *files, const char *name, int *folder);

/* Syncs both folders, with what was made and renamed in them. Returns false if that fails. */
bool data_files_sync(const struct data_files *files);
