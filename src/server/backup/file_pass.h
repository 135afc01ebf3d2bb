/* file_pass.h - reads a file once, from its beginning to its end: to know its hash, and to copy it.
 *
 * Files are named inside an open folder, and no link is followed: whoever owns the folder may be
 * somebody else, who exchanges what is in it meanwhile. All of this blocks. */
#pragma once

#include <signal.h>
#include <stdint.h>

#include "base/error.h"

enum { FILE_PASS_HASH = 65 };

struct file_facts {
    uint64_t bytes;
    char sha256[FILE_PASS_HASH]; /* lower case */
};

/* ERR_NOT_FOUND: there is no such file. ERR_INVALID: it is a link, or no regular file.
 * ERR_STORE: it cannot be read. ERR_CANCELED: *stopped has become true. */
enum err file_pass_hash(int folder, const char *name, const volatile sig_atomic_t *stopped,
                        struct file_facts *facts, struct failure *why);

/* The same, and a copy in another folder, which only we can read; it is not synced to its end. The
 * copy is not there before; after an error what there is of it is the caller's to remove. */
enum err file_pass_copy(int folder, const char *name, int to_folder, const char *to_name,
                        const volatile sig_atomic_t *stopped, struct file_facts *facts,
                        struct failure *why);

/* Syncs a file that was copied. ERR_STORE with the reason. */
enum err file_pass_sync(int folder, const char *name, struct failure *why);

/* Writes a new file of this text, synced. ERR_STORE with the reason. */
enum err file_pass_write(int folder, const char *name, const char *text, size_t len,
                         struct failure *why);
