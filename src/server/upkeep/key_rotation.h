/* key_rotation.h - replaces the encryption key while the gateway serves.
 *
 *   save the key to disk ─► wait for sealers ─► scan ─► reseal all, some per turn
 *        ─► one commit ─► scan: is anything left? ─► the next key is the key
 *
 * Until the commit, the old key opens everything; after it, the new one does. */
#pragma once

#include "accounts/accounts.h"
#include "core/engine/engine.h"

struct rotate;

struct rotate *rotate_create(struct engine *engine, struct accounts *accounts);

/* Requires that it is not busy. Ignores NULL. */
void rotate_destroy(struct rotate *rotate);

/* Called once, never from inside rotate_begin. Unless status is OK or text says otherwise,
 * nothing has changed. */
typedef void rotate_done_fn(void *owner, enum err status, const char *text);

/* next_key absent: generate one. On an error, with the reason, nothing was begun. */
enum err rotate_begin(struct rotate *rotate, struct slice next_key, rotate_done_fn *done,
                      void *owner, struct failure *why);

/* Reverts a rotation that has not reached its commit. Ignores NULL. */
void rotate_stop(struct rotate *rotate);

/* Returns true until a rotation has reported. While it is true, keep the arguments of
 * rotate_create alive. NULL: false. */
bool rotate_busy(const struct rotate *rotate);
