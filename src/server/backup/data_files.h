/* data_files.h - the folders of a data directory, or of a copy of one, as descriptors.
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
    int deployments; /* -1: closed, or missing because nothing was deployed */
};

void data_files_init(struct data_files *files);
void data_files_close(struct data_files *files);

/* Opens the folder at the path, and its folder of deployments if there is one. Returns
 * false and sets errno if either cannot be opened; top is -1 if it is the first. */
bool data_files_open(struct data_files *files, const char *path);

/* Opens an empty folder inside another, and creates the folder of deployments in it.
 * Returns false and sets errno if that fails. */
bool data_files_begin(struct data_files *files, int above, const char *name);

/* Returns the name of a manifest's file within its folder, and which of the two folders
 * that is. */
const char *data_files_place(const struct data_files *files, const char *name, int *folder);

/* Syncs both folders, including renames in them. Returns false if that fails. */
bool data_files_sync(const struct data_files *files);
