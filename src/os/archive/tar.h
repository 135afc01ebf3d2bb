/* tar.h - reads a tar archive, and checks each header before storing any of its entry.
 *
 *   tar_next ─► tar_read … tar_read ─► tar_next … ─► *ended
 *
 * It reads ustar, the older V7, pax headers (POSIX.1-2017, pax) and GNU tar's long names.
 * An entry that is neither a file nor a folder has its `kind` set, and its content is never
 * read. An archive takes no memory beyond struct tar, and bundle_limits limits the number
 * of its headers. Blocks: call it on a pool thread. */
#pragma once

#include "os/archive/bundle.h"
#include "os/archive/gunzip.h"

enum {
    TAR_BLOCK = 512,
    TAR_EXTENDED_MAX = 65536, /* bytes of a pax header; macOS stores attributes there */
    TAR_READ_SIZE = 65536,
};

struct tar_entry {
    const char *name; /* terminated; valid until the next tar_next */
    const char *kind; /* such as "a link"; NULL: a file or a folder */
    bool is_folder, executable;
    uint64_t size; /* bytes of content; 0 for folders */
};

struct tar {
    struct gunzip gunzip;
    const struct bundle_limits *limits; /* owned by the caller */
    uint64_t headers;                   /* number read so far, including those of names */
    uint64_t extended;                  /* bytes of pax headers and long names so far */
    uint64_t left;                      /* unread content of the entry */
    unsigned padding;                   /* unread bytes up to the end of its last block */

    /* From the headers that precede an entry. */
    bool has_name, has_size, is_link, is_sparse;
    char name[BUNDLE_NAME_MAX + 1];
    uint64_t size;

    char block[TAR_BLOCK];
    char bytes[TAR_EXTENDED_MAX]; /* a pax header, or content */
};

/* file and canceled: see gunzip.h. */
void tar_init(struct tar *tar, int file, const atomic_bool *canceled,
              const struct bundle_limits *limits);
void tar_finish(struct tar *tar);

/* Skips the rest of the current entry and reads the next one. Sets *ended, and not entry,
 * if no entry is left. Returns ERR_INVALID, ERR_TOO_LARGE, or an error of gunzip_read. */
enum err tar_next(struct tar *tar, struct tar_entry *entry, bool *ended,
                  struct failure *why);

/* Reads the next piece of the content, valid until the next call; empty at its end. */
enum err tar_read(struct tar *tar, struct slice *piece, struct failure *why);
