/* gunzip.h - unpacks a gzip file (RFC 1952) piece by piece, in a fixed amount of memory.
 *
 * gunzip.c parses the headers of its members and limits their length and number; zlib only
 * gets the compressed bytes. Blocks: call it on a pool thread. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <zlib.h>

#include "base/error.h"

enum {
    GUNZIP_HEADER_MAX = 4096,   /* bytes of a member's header */
    GUNZIP_MEMBERS_MAX = 65536, /* bgzip writes one per 64 KiB */
    GUNZIP_READ_SIZE = 65536,
};

struct gunzip {
    int file;                    /* a descriptor, owned by the caller */
    const atomic_bool *canceled; /* owned by the caller */
    off_t at;                    /* in the file: other readers may share the descriptor */
    uint64_t packed;             /* bytes read */
    unsigned members;            /* members begun */
    bool inside;                 /* between a member's header and its trailer */
    uint32_t checksum, size;     /* of the member's content so far */
    z_stream stream;
    unsigned char bytes[GUNZIP_READ_SIZE];
};

void gunzip_init(struct gunzip *gunzip, int file, const atomic_bool *canceled);
void gunzip_finish(struct gunzip *gunzip);

/* Unpacks at least one byte and at most max. *got is 0 only after the last byte.
 * ERR_INVALID: not gzip, or damaged. ERR_INTERNAL: the file is unreadable. ERR_CANCELED. */
enum err gunzip_read(struct gunzip *gunzip, char *to, size_t max, size_t *got,
                     struct failure *why);
