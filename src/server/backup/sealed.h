/* sealed.h - whether a key opens what is sealed in a database. */
#pragma once

#include <stdbool.h>

#include "base/vault/vault.h"
#include "store/sqlite/snapshot/sqlite_look.h"

/* The id of the key that has sealed the keys of environments; false: they say none, or there are
 * none. */
bool sealed_key_id(struct sqlite_look *look, char id[KEY_ID_TEXT_MAX]);

/* Returns OK if the key opens everything in the database of a copy, and writes its id if id is not
 * NULL. key "": the one in the file key_path. ERR_INVALID with the reason: it does not. */
enum err sealed_try(const char *database_path, const char *key, const char *key_path,
                    char id[KEY_ID_TEXT_MAX], struct failure *why);

/* Opens everything, as a start of the gateway does, and calls found for what does not open or is
 * damaged, with a sentence that says what to do: for the first few, and once for how many there
 * are beside them. ERR_STORE: the database cannot be read. */
enum err sealed_check(struct sqlite_look *look, struct vault *vault, sqlite_found_fn *found,
                      void *owner, struct failure *why);
