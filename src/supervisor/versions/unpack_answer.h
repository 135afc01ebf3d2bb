/* unpack_answer.h - the unpacker's answer (unpacker.h), on its standard output.
 *
 *   NAME LENGTH\n bytes …          build files that the archive has (unpack_file_kinds)
 *   done 0\n                       the last one: everything that was ordered is unpacked,
 *   refused LENGTH\n sentence      or the archive is rejected,
 *   full LENGTH\n sentence         or the disk is full
 *
 * The reader trusts none of it, because a hostile archive may control the process that
 * wrote it. The answer is bounded, and valid only as a whole. */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/error.h"

enum unpack_file { UNPACK_MANIFEST, UNPACK_CONTAINERFILE, UNPACK_PACKAGE, UNPACK_FILES };

/* Name in the archive, and maximum size. */
struct unpack_file_kind {
    const char *name;
    size_t max;
};
extern const struct unpack_file_kind unpack_file_kinds[UNPACK_FILES];

/* Each writes one record to the descriptor. Returns false if that fails. */
bool unpack_answer_write_file(int to, enum unpack_file file, struct slice content);
bool unpack_answer_write_end(int to, enum err refused, const struct failure *why);

/* A zeroed struct is an empty answer. */
struct unpack_answer {
    struct buf bytes;
    bool too_long; /* it is longer than any valid answer */
    /* point into bytes; ptr NULL: the archive has no such file */
    struct slice files[UNPACK_FILES];
};

/* Appends a piece of output. */
void unpack_answer_add(struct unpack_answer *answer, struct slice piece);

/* Parses what was appended, and sets files.
 *
 * Returns ERR_INVALID if the archive was rejected or ERR_STORE_FULL if the disk was full,
 * both with the unpacker's sentence in UTF-8; ERR_INTERNAL if the answer is invalid. */
enum err unpack_answer_read(struct unpack_answer *answer, struct failure *why);

void unpack_answer_finish(struct unpack_answer *answer);
