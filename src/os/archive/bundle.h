/* bundle.h - reads the untrusted archive of a version: gzip around tar.
 *
 *   bundle_open ─► bundle_check ─► bundle_extract (some) … bundle_extract (all)
 *                   rejects what is invalid, with a reason; nothing was written yet
 *
 * An archive contains regular files and folders with plain relative names in UTF-8, and
 * nothing else: no links, devices or holes, and no name twice. Limits are checked while it
 * is read. Each pass reads the archive from the beginning and checks everything again. The
 * headers of gzip and tar are parsed by code in this folder (gunzip.h, tar.h), in a fixed
 * amount of memory, except for the names of the files.
 *
 * All of this blocks, for seconds if the archive is large: never call it on a loop's
 * thread. Untrusted archives are read in a process of their own
 * (supervisor/versions/unpacker.h). Other processes only open and hash them, on a pool
 * thread, with one call at a time per bundle. Only bundle_cancel may be called from another
 * thread in the meantime. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/error.h"

enum {
    BUNDLE_NAME_MAX = 1024, /* bytes */
    BUNDLE_DEPTH_MAX = 100, /* parts of a name */
    BUNDLE_PART_MAX = 255,  /* bytes: disks allow no more */
    BUNDLE_HASH_LEN = 32,   /* SHA-256 */
};

/* The defaults are bundle_limits_default. */
struct bundle_limits {
    uint32_t files_max;    /* files and folders, also folders that only occur in names */
    uint64_t unpacked_max; /* bytes of all files */
    uint32_t ratio_max;    /* unpacked to packed bytes, from bundle_ratio_from on */
};

static const uint64_t bundle_ratio_from = UINT64_C(16) << 20; /* unpacked bytes */
extern const struct bundle_limits bundle_limits_default;      /* 20,000; 1 GiB; 200 */

struct bundle_content {
    uint32_t files, folders; /* folders with entries, and those that only occur in names */
    uint64_t unpacked, packed;
};

struct bundle;

/* Open an archive by path, or duplicate the descriptor, which stays the caller's. */
enum err bundle_open(const char *path, const struct bundle_limits *limits,
                     struct bundle **bundle, struct failure *why);
enum err bundle_open_fd(int file, const struct bundle_limits *limits,
                        struct bundle **bundle, struct failure *why);

/* Returns the archive's descriptor, open for reading; borrowed until bundle_close. */
int bundle_file(const struct bundle *bundle);

/* Ignores NULL. */
void bundle_close(struct bundle *bundle);

/* Makes the current call, and all later ones, return ERR_CANCELED. */
void bundle_cancel(struct bundle *bundle);

/* Hashes the packed bytes. */
enum err bundle_hash(struct bundle *bundle, unsigned char hash[BUNDLE_HASH_LEN],
                     struct failure *why);

/* Reads everything and writes nothing. content may be NULL. ERR_INVALID: rejected.
 * ERR_TOO_LARGE: above a limit. ERR_INTERNAL: unreadable. */
enum err bundle_check(struct bundle *bundle, struct bundle_content *content,
                      struct failure *why);

/* The files to extract, and the place for them. */
struct bundle_target {
    int folder;               /* a descriptor, owned by the caller */
    const char *const *names; /* of files, ended by NULL; NULL: everything */
    uid_t uid;                /* owner of the written files; 0: the current user */
    gid_t gid;
};

/* Writes files of mode 0644 or 0755, and folders of mode 0755. Existing files are replaced
 * by entries of the same name, but a folder never by a file. Links are replaced and never
 * followed, even if another process creates them in the meantime. ERR_STORE_FULL: the disk
 * is full. Files written before a failure stay, and an incomplete one has mode 0600; the
 * caller must delete the folder. */
enum err bundle_extract(struct bundle *bundle, const struct bundle_target *target,
                        struct failure *why);

/* Appends the content of one file of at most max bytes. ERR_NOT_FOUND: no such file. */
enum err bundle_read_file(struct bundle *bundle, struct slice name, size_t max,
                          struct buf *out, struct failure *why);
