/* sealed.h - whether a key opens what is sealed in a database. */
#pragma once

#include <stdbool.h>

#include "base/vault/vault.h"
#include "store/sqlite/snapshot/sqlite_look.h"

/* The id of the key that has sealed the keys of environments; false: they say none, or there are
 * none. */
bool sealed_key_id(struct sqlite_look *look, char id[KEY_ID_TEXT_MAX]);

/* Opens everything, as a start of the gateway does, and calls found for what does not open or is
 * damaged, with a sentence that says what to do: for the first few, and once for how many there
 * are beside them. ERR_STORE: the database cannot be read. */
enum err sealed_check(struct sqlite_look *look, struct vault *vault, sqlite_found_fn *found,
                      void *owner, struct failure *why);
