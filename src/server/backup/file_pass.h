/* file_pass.h - reads a file once from start to end: hashes it, and may copy it.
 *
 * Files are named relative to an open folder, and links are not followed, because the
 * folder may belong to another user who changes it meanwhile. All of this blocks. */
#pragma once

#include <signal.h>
#include <stdint.h>

#include "base/error.h"

enum { FILE_PASS_HASH = 65 };

struct file_facts {
    uint64_t bytes;
    char sha256[FILE_PASS_HASH]; /* lower case */
};

/* ERR_NOT_FOUND: there is no such file. ERR_INVALID: it is a link, or not a regular file.
 * ERR_STORE: it cannot be read. ERR_CANCELED: *stopped has become true. */
enum err file_pass_hash(int folder, const char *name, const volatile sig_atomic_t *stopped,
                        struct file_facts *facts, struct failure *why);

/* Hashes the file and copies it into another folder, readable only by its owner, not fully
 * synced. The copy must not exist yet. After an error, the caller removes it. */
enum err file_pass_copy(int folder, const char *name, int to_folder, const char *to_name,
                        const volatile sig_atomic_t *stopped, struct file_facts *facts,
                        struct failure *why);

/* Syncs a copied file. ERR_STORE with the reason. */
enum err file_pass_sync(int folder, const char *name, struct failure *why);

/* Writes and syncs a new file. ERR_STORE with the reason. */
enum err file_pass_write(int folder, const char *name, const char *text, size_t len,
                         struct failure *why);
