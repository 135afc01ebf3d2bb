/* gunzip.h - unpacks a gzip file piece by piece, in memory that no file can make larger.
 *
 * The headers of its members are read by gunzip.c, which bounds their length and their number; zlib
 * gets the compressed bytes alone. RFC 1952. Blocks: for a thread of the pool. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <zlib.h>

#include "base/error.h"

enum {
    GUNZIP_HEADER_MAX = 4096,   /* bytes of one member's header */
    GUNZIP_MEMBERS_MAX = 65536, /* bgzip makes one for every 64 KiB */
    GUNZIP_READ_SIZE = 65536,
};

struct gunzip {
    int file;                    /* a descriptor, the caller's */
    const atomic_bool *canceled; /* the caller's */
    off_t at;                    /* in the file: other readers may share the descriptor */
    uint64_t packed;             /* bytes that were read */
    unsigned members;            /* begun */
    bool inside;                 /* a member's header was read, and its trailer was not */
    uint32_t checksum, size;     /* of what the member has given so far */
    z_stream stream;
    unsigned char bytes[GUNZIP_READ_SIZE];
};

void gunzip_init(struct gunzip *gunzip, int file, const atomic_bool *canceled);
void gunzip_finish(struct gunzip *gunzip);

/* Unpacks at least one byte and at most max. *got is 0 only after the last one. ERR_INVALID: this
 * is not gzip, or damaged; ERR_INTERNAL: the file cannot be read; ERR_CANCELED. */
enum err gunzip_read(struct gunzip *gunzip, char *to, size_t max, size_t *got,
                     struct failure *why);
