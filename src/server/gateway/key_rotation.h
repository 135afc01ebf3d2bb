/* key_rotation.h - another encryption key, while the gateway serves.
 *
 *   key on the disk ─► sealers have finished ─► scan ─► seal all again, a slice a turn
 *        ─► one commit ─► scan: is anything left? ─► the next key is the key
 *
 * Until the commit the old key opens everything, from it on the new one does. */
#pragma once

#include "accounts/accounts.h"
#include "core/engine/engine.h"

struct rotate;

struct rotate *rotate_create(struct engine *engine, struct accounts *accounts);

/* Not busy. NULL is fine. */
void rotate_destroy(struct rotate *rotate);

/* Once, never from inside rotate_begin: OK, or nothing has changed unless text says so. */
typedef void rotate_done_fn(void *owner, enum err status, const char *text);

/* next_key absent: one is drawn. An error, with the reason, begins nothing. */
enum err rotate_begin(struct rotate *rotate, struct slice next_key, rotate_done_fn *done,
                      void *owner, struct failure *why);

/* What has not come to its commit is taken back. NULL is fine. */
void rotate_stop(struct rotate *rotate);

/* True until a rotation that was begun has reported: so long everything that it was created
 * with stays. NULL: false. */
bool rotate_busy(const struct rotate *rotate);
