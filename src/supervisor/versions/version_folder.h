/* version_folder.h - the folder of one version, from creation until it is in place.
 *
 *   version_folder_make       ID.new, empty, owned by the builder
 *   … filled by the unpacker, npm, commands and the index
 *   version_folder_write_manifest   build.json with the paths of ID.new, for the index
 *   version_folder_seal       index.json and build.json with those of ID, runcast.json;
 *                             sealed, synced, renamed to ID
 *
 * In the end the folder and its files belong to this process, and only the group of the
 * builder's user may enter ID. A folder ID is complete; a folder ID.new found at startup is
 * not. A folder that is no longer needed is immediately renamed to a name that ends with
 * ".old.new". It is removed later, because that takes time in proportion to its files. All
 * functions block: call them on a pool thread. */
#pragma once

#include "base/buf.h"
#include "os/process/process.h"
#include "supervisor/versions/tree.h"

enum { INDEX_BYTES_MAX = 8 << 20 };

struct version_folder {
    int versions; /* descriptors; -1: closed */
    int folder;
    char *name, *new_name; /* "ID", "ID.new" */
    char *path, *new_path; /* absolute */
    struct process_user user;
};

/* Content of runcast.json; borrowed. */
struct version_facts {
    const char *id, *version, *content_hash, *archive_hash;
    const char *architecture, *libc, *program;
};

/* versions: path of the folder with all versions. Call version_folder_finish in any
 * case. */
enum err version_folder_make(struct version_folder *folder, const char *versions,
                             const char *id, struct process_user user, struct failure *why);

/* Closes it, and sets it aside unless it is in place. A zeroed one is allowed. */
void version_folder_finish(struct version_folder *folder);

/* manifest: build.json of the bundle. */
enum err version_folder_write_manifest(struct version_folder *folder, struct slice manifest,
                                       struct failure *why);

/* Replaces the archive's package.json until everything is unpacked. */
enum err version_folder_write_package(struct version_folder *folder, struct slice text,
                                      struct failure *why);

/* Appends the index.json of the child INDEX, with its paths changed to those of an
 * image. */
enum err version_folder_read_index(struct version_folder *folder, struct buf *index,
                                   struct failure *why);

/* index: with the paths of an image. *bytes: size of all files. limits, work: see
 * tree_seal. */
enum err version_folder_seal(struct version_folder *folder, struct slice manifest,
                             struct slice index, const struct version_facts *facts,
                             const struct tree_limits *limits, const struct work *work,
                             uint64_t *bytes, struct failure *why);

/* Lets only the group of this user enter a ready version, and lets no user change it.
 *
 * It may have belonged to another user or been open to all. Returns ERR_STORE with the
 * reason. */
enum err version_folder_give(const char *path, struct process_user user,
                             struct failure *why);

/* Sets aside a version that is not needed. */
void version_folder_set_aside(const char *versions, const char *id);

/* Sets aside unfinished versions of earlier processes. Call it at startup. */
void version_folder_set_unfinished_aside(const char *versions);

/* Removes the folders that were set aside.
 *
 * Returns false if some are left because the job must stop. */
bool version_folder_remove_old(const char *versions, const struct work *work);
