/* tar.h - reads the headers of a tar archive, each judged before anything of it is stored.
 *
 *   tar_next ─► tar_read … tar_read ─► tar_next … ─► *ended
 *
 * The dialects are ustar, the older V7, pax headers (POSIX.1-2017, pax) and the long names of GNU
 * tar. A header that stands for anything but a file or a folder says so in `kind`; its content is
 * never read. How much one archive can make this hold is the size of struct tar, and how
 * many headers it may have follows from bundle_limits. Blocks: for a thread of the pool. */
#pragma once

#include "os/archive/bundle.h"
#include "os/archive/gunzip.h"

enum {
    TAR_BLOCK = 512,
    TAR_EXTENDED_MAX = 65536, /* bytes of one pax header: it may hold attributes of a Mac */
    TAR_READ_SIZE = 65536,
};

struct tar_entry {
    const char *name; /* terminated; until the next tar_next */
    const char *kind; /* "a link"; NULL: a file or a folder */
    bool is_folder, executable;
    uint64_t size; /* of the content; 0 for folders */
};

struct tar {
    struct gunzip gunzip;
    const struct bundle_limits *limits; /* the caller's */
    uint64_t headers;                   /* read so far, those of names too */
    uint64_t extended;                  /* bytes of pax headers and long names so far */
    uint64_t left;                      /* content of the entry that was not read */
    unsigned padding;                   /* to the end of its last block */

    /* From the headers that precede an entry. */
    bool has_name, has_size, is_link, is_sparse;
    char name[BUNDLE_NAME_MAX + 1];
    uint64_t size;

    char block[TAR_BLOCK];
    char bytes[TAR_EXTENDED_MAX]; /* a pax header, or content */
};

/* file and canceled as in gunzip.h. */
void tar_init(struct tar *tar, int file, const atomic_bool *canceled,
              const struct bundle_limits *limits);
void tar_finish(struct tar *tar);

/* Skips the rest of the entry before. Sets *ended when no entry is left; entry is then not set.
 * Returns ERR_INVALID, ERR_TOO_LARGE, or an error of gunzip_read. */
enum err tar_next(struct tar *tar, struct tar_entry *entry, bool *ended,
                  struct failure *why);

/* The next piece of the entry's content, until the next call; empty: it ended. */
enum err tar_read(struct tar *tar, struct slice *piece, struct failure *why);
