/* tar_maker.h - builds archives byte by byte, even ones that no tool creates. */
#pragma once

#include "base/buf.h"
#include "os/archive/bundle.h"

struct tar_entry {
    const char *name; /* at most 100 bytes; longer ones by a pax header */
    char type;        /* '0' file, '5' folder, '1' and '2' links, …; 0: '0' */
    struct slice content;
    unsigned mode; /* 0: 0644 */
    const char *link;
    uint64_t size;    /* in the header, if not the size of the content; 0: it is */
    bool binary_size; /* the size is written in base 256 */
    /* of type 'S': more of the map of holes follows, in separate blocks */
    bool extended;
};

/* ustar: the header and the content, filled up to whole blocks. */
void tar_add(struct buf *tar, const struct tar_entry *entry);

/* A file of that name and content. */
void tar_add_file(struct buf *tar, const char *name, const char *content);

/* "NAME=value" as a record of a pax header for the next entry; its length is added. */
void tar_add_pax(struct buf *tar, struct slice record);

/* A name as GNU tar writes long ones. */
void tar_add_gnu_name(struct buf *tar, const char *name);

/* Appends the two empty blocks. */
void tar_end(struct buf *tar);

void tar_gzip(struct slice tar, struct buf *packed);

/* A file in memory with these bytes, opened as a bundle. */
struct bundle *tar_open(struct slice packed, const struct bundle_limits *limits);
