/* sealed.h - checks whether a key opens the sealed values of a database. */
#pragma once

#include <stdbool.h>

#include "base/vault/vault.h"
#include "store/sqlite/snapshot/sqlite_look.h"

/* Copies the id of the encryption key from the first sealed key of an environment.
 *
 * Returns false if no environment has such a key, or the key does not contain the id. */
bool sealed_key_id(struct sqlite_look *look, char id[KEY_ID_TEXT_MAX]);

/* Returns OK if the key opens everything in the copied database, and writes its id unless
 * id is NULL. key "": use the key in the file key_path. ERR_INVALID with the reason: it
 * does not. */
enum err sealed_try(const char *database_path, const char *key, const char *key_path,
                    char id[KEY_ID_TEXT_MAX], struct failure *why);

/* Opens all sealed values, as a gateway does when it starts. Calls found for those that do
 * not open or are damaged, with a sentence that says what to do: for the first few, and
 * once with the number of the others. ERR_STORE: the database cannot be read. */
enum err sealed_check(struct sqlite_look *look, struct vault *vault, sqlite_found_fn *found,
                      void *owner, struct failure *why);
