/* key_file.h - an encryption key as text, and in a 0600 file of its own. */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "base/slice.h"

enum { KEY_LEN = 32 };

/* 64 hex digits, or 44 characters of base64. */
bool key_read(struct slice text, unsigned char key[KEY_LEN]);

/* The same with a reason that names where the text came from. */
enum err key_parse(struct slice text, const char *source, unsigned char key[KEY_LEN],
                   struct failure *why);

/* ERR_NOT_FOUND: there is none. ERR_INVALID: malformed, or others may read it. */
enum err key_file_read(const char *path, unsigned char key[KEY_LEN], struct failure *why);

/* Written beside its place, synced and renamed, so that a key that is there is whole. */
enum err key_file_write(const char *path, const unsigned char key[KEY_LEN],
                        struct failure *why);

/* Moves a key file to the place of what is at the other path; on the disk when it returns OK. */
enum err key_file_move(const char *from, const char *to, struct failure *why);

/* Removes a key file, also from the disk. That there was none is fine. */
enum err key_file_remove(const char *path, struct failure *why);
