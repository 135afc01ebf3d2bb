/* tree.h - the folder of a version, in which a stranger's programs have written: what is in it is
 * never followed, and its end is one of two.
 *
 *   tree_seal      it belongs to this process, and nobody else can write in it
 *   tree_remove    nothing of it is left
 *
 * Both block: for a thread of the pool. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

/* Regular files become 0644 or 0755, folders 0755, links stay; what is none of these is removed.
 * All of it is synced. bytes: of all files. ERR_INVALID: a file that has another name elsewhere
 * too, and is not the builder's, keeps its owner and mode: it may be one of the machine's. */
enum err tree_seal(int folder, uid_t builder, uint64_t *bytes, struct failure *why);

/* A name in the folder above, whatever it is; also when its owner works against it. */
void tree_remove(int above, const char *name);
