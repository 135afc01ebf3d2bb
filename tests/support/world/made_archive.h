/* made_archive.h - an archive that a test builds, and the reader's result. */
#pragma once

#include "tests/support/world/tar_maker.h"

/* Empty when zeroed. Each of these functions ends the archive. */
struct made_archive {
    struct buf tar, packed;
};

/* 10 files and folders of 5,000 bytes together. */
extern const struct bundle_limits made_limits;

/* Packs it into a file. The caller closes the file, and then finishes the archive. */
struct bundle *made_open(struct made_archive *made, const struct bundle_limits *limits);
void made_finish(struct made_archive *made);

/* Checks it with made_limits; the archive is finished and can be filled again. */
void made_assert_refused(struct made_archive *made, enum err code, const char *reason);
struct bundle_content made_assert_fine(struct made_archive *made);

/* The same for any bytes. */
enum err made_check_bytes(struct slice bytes, struct failure *why);
