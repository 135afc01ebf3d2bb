/* version_folder.h - the folder of one version, from nothing to its place.
 *
 *   version_folder_make       ID.new, empty, the builder's
 *   … written by bundle_extract, npm, commands and the index
 *   version_folder_write_manifest   build.json with the paths of ID.new, for the index
 *   version_folder_seal       index.json and build.json with those of ID, runcast.json; sealed,
 *                             synced, renamed to ID
 *
 * Both belong to this process at the end, and only the group of the builder's user enters
 * ID. A folder ID is complete; a folder named ID.new at a start is not. A folder that is
 * not needed any more gets a name that ends with ".old.new" at once, and is removed
 * afterwards: that takes time in proportion to the files that a build has made. All of this
 * blocks: for a thread of the pool. */
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

/* What runcast.json says; borrowed. */
struct version_facts {
    const char *id, *version, *content_hash, *archive_hash;
    const char *architecture, *libc, *program;
};

/* versions: the path of the folder of all. The folder is to be finished in any case. */
enum err version_folder_make(struct version_folder *folder, const char *versions,
                             const char *id, struct process_user user, struct failure *why);

/* Closes it, and sets it aside unless it is in its place. A zeroed one is fine. */
void version_folder_finish(struct version_folder *folder);

/* manifest: build.json as the bundle has it. */
enum err version_folder_write_manifest(struct version_folder *folder, struct slice manifest,
                                       struct failure *why);

/* package.json in the place of that of the archive, until everything is unpacked. */
enum err version_folder_write_package(struct version_folder *folder, struct slice text,
                                      struct failure *why);

/* Appends index.json as the index wrote it, with the paths of an image. */
enum err version_folder_read_index(struct version_folder *folder, struct buf *index,
                                   struct failure *why);

/* index: with the paths of an image. bytes: of all files. limits, work: tree_seal. */
enum err version_folder_seal(struct version_folder *folder, struct slice manifest,
                             struct slice index, const struct version_facts *facts,
                             const struct tree_limits *limits, const struct work *work,
                             uint64_t *bytes, struct failure *why);

/* What is ready may be entered by the group of this user alone, and changed by nobody: it may
 * have had another user, or all of them. ERR_STORE with the reason. */
enum err version_folder_give(const char *path, struct process_user user,
                             struct failure *why);

/* Sets a version aside that is not needed, however far its build has come. */
void version_folder_set_aside(const char *versions, const char *id);

/* At a start: sets aside what builds have left. */
void version_folder_set_unfinished_aside(const char *versions);

/* Removes the folders that were set aside. Returns false if something is left because
 * the job must end. */
bool version_folder_remove_old(const char *versions, const struct work *work);
