/* unpack_answer.h - the answer of the unpacker (unpacker.h): its standard output, and how it is read.
 *
 *   NAME LENGTH\n bytes …          files that say how the version is built, those that the archive has
 *   done 0\n                       the last one: everything that was asked for is unpacked,
 *   refused LENGTH\n sentence      or the archive is refused,
 *   full LENGTH\n sentence         or the disk is full
 *
 * The reader trusts none of it: a process that a hostile archive has taken over may have written
 * it. It is bounded, and valid only as a whole. */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/error.h"

enum unpack_file { UNPACK_MANIFEST, UNPACK_CONTAINERFILE, UNPACK_PACKAGE, UNPACK_FILES };

/* Its name in the archive, and its most bytes. */
struct unpack_file_kind {
    const char *name;
    size_t max;
};
extern const struct unpack_file_kind unpack_file_kinds[UNPACK_FILES];

/* Each writes one record to the descriptor. Returns false if it cannot be written. */
bool unpack_answer_write_file(int to, enum unpack_file file, struct slice content);
bool unpack_answer_write_end(int to, enum err refused, const struct failure *why);

/* A zeroed one is empty. */
struct unpack_answer {
    struct buf bytes;
    bool too_long;                    /* more came than the longest valid answer has */
    struct slice files[UNPACK_FILES]; /* in bytes; ptr NULL: the archive has no such file */
};

/* Appends a piece, as it comes. */
void unpack_answer_add(struct unpack_answer *answer, struct slice piece);

/* Reads what was appended, and sets files. ERR_INVALID: the archive is refused, with the sentence
 * in UTF-8; ERR_STORE_FULL: the disk is full, the same; ERR_INTERNAL: the answer is not valid. */
enum err unpack_answer_read(struct unpack_answer *answer, struct failure *why);

void unpack_answer_finish(struct unpack_answer *answer);
