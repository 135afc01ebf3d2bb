/* key_file.h - an encryption key as text, and in a file of its own with mode 0600. */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "base/slice.h"

enum { KEY_LEN = 32 };

/* Reads 64 hex digits, or 44 characters of base64. Returns false if it is neither. */
bool key_read(struct slice text, unsigned char key[KEY_LEN]);

/* The same, with a reason that names the source of the text. */
enum err key_parse(struct slice text, const char *source, unsigned char key[KEY_LEN],
                   struct failure *why);

/* ERR_NOT_FOUND: no such file. ERR_INVALID: malformed, or others may read it. */
enum err key_file_read(const char *path, unsigned char key[KEY_LEN], struct failure *why);

/* Writes and syncs a new file, then renames it: a key file that exists is complete. A write
 * that fails leaves no copy of the key. */
enum err key_file_write(const char *path, const unsigned char key[KEY_LEN],
                        struct failure *why);

/* Moves a key file, replacing the one at the other path; on the disk once it returns OK. */
enum err key_file_move(const char *from, const char *to, struct failure *why);

/* Removes a key file, also from the disk. OK if there was none. */
enum err key_file_remove(const char *path, struct failure *why);
