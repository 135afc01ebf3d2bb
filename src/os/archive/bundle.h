/* bundle.h - reads the archive of a version, which strangers made: gzip around tar.
 *
 *   bundle_open ─► bundle_check ─► bundle_extract (some) … bundle_extract (all)
 *                   refuses what is not as it should be, in words; nothing was written yet
 *
 * In it are regular files and folders with plain relative names in UTF-8, and nothing else:
 * no links, devices or holes, no name twice. Limits count while it is read. Each pass reads the
 * archive from its beginning and judges everything that it passes: the headers of gzip and tar are
 * read by code of this folder (gunzip.h, tar.h), in memory whose size no archive decides but for
 * the names of its files.
 *
 * All of this blocks, for seconds when the archive is large: never call it on a loop's thread.
 * Archives of strangers are read in a process of their own
 * (supervisor/versions/unpacker.h); other processes only open and hash them, on a thread of
 * the pool, one call at a time for each bundle. Only bundle_cancel may come from another
 * thread meanwhile. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/error.h"

enum {
    BUNDLE_NAME_MAX = 1024, /* bytes */
    BUNDLE_DEPTH_MAX = 100, /* parts of a name */
    BUNDLE_PART_MAX = 255,  /* bytes: more is no name for a disk */
    BUNDLE_HASH_LEN = 32,   /* SHA-256 */
};

/* Defaults are bundle_limits_default. */
struct bundle_limits {
    uint32_t files_max;    /* files and folders, those that are only parts of names, too */
    uint64_t unpacked_max; /* bytes of all files */
    uint32_t ratio_max;    /* unpacked by packed bytes, from BUNDLE_RATIO_FROM on */
};

static const uint64_t bundle_ratio_from = UINT64_C(16) << 20; /* unpacked bytes */
extern const struct bundle_limits bundle_limits_default;      /* 20,000; 1 GiB; 200 */

struct bundle_content {
    uint32_t files, folders; /* folders by name, and those that are parts of names */
    uint64_t unpacked, packed;
};

struct bundle;

/* Takes over nothing: the file is opened anew by its path, or the descriptor doubled. */
enum err bundle_open(const char *path, const struct bundle_limits *limits,
                     struct bundle **bundle, struct failure *why);
enum err bundle_open_fd(int file, const struct bundle_limits *limits,
                        struct bundle **bundle, struct failure *why);

/* The descriptor of the archive, open for reading; borrowed until bundle_close. */
int bundle_file(const struct bundle *bundle);

/* NULL is fine. */
void bundle_close(struct bundle *bundle);

/* What runs, and what comes later, ends with ERR_CANCELED. */
void bundle_cancel(struct bundle *bundle);

/* Of the packed bytes. */
enum err bundle_hash(struct bundle *bundle, unsigned char hash[BUNDLE_HASH_LEN],
                     struct failure *why);

/* Reads everything and writes nothing. ERR_INVALID: it is refused; ERR_TOO_LARGE: a limit;
 * ERR_INTERNAL: it cannot be read. content may be NULL. */
enum err bundle_check(struct bundle *bundle, struct bundle_content *content,
                      struct failure *why);

/* How and what is extracted. */
struct bundle_target {
    int folder;               /* a descriptor, the caller's */
    const char *const *names; /* of files, ended by NULL; NULL: everything */
    uid_t uid;                /* the owner of what is written; 0: who runs this */
    gid_t gid;
};

/* Writes 0644 and 0755 files and 0755 folders. What is there gives way to what the archive has
 * under the same name, but a folder to no file; links are replaced and never followed, also
 * when somebody puts them there meanwhile. ERR_STORE_FULL: the disk is. What was written
 * before a failure stays, a file that is not whole with the mode 0600: the folder is the
 * caller's to delete. */
enum err bundle_extract(struct bundle *bundle, const struct bundle_target *target,
                        struct failure *why);

/* Appends the content of one file of at most max bytes. ERR_NOT_FOUND: there is none. */
enum err bundle_read_file(struct bundle *bundle, struct slice name, size_t max,
                          struct buf *out, struct failure *why);
