/* json_tree.h - short JSON as a tree of jansson, whose strings may hold what jansson refuses.
 *
 * jansson's own reader refuses an escape of half a surrogate pair and, by its default, an
 * escaped zero byte, and its writer refuses the bytes that stand for a half (scan.h). Here a
 * string of the tree holds the bytes that scan_string decodes, so its length counts:
 * json_string_length, not strlen. */
#pragma once

#include <jansson.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/slice.h"

/* Levels of nesting. Building a tree walks over the text once for each level that encloses it, and
 * building, writing and freeing recurse. Bodies of calls may be 64 deep (call.h). */
enum { TREE_DEPTH_MAX = 100 };

enum tree_options {
    TREE_ONE_OF_EACH = 1 << 0, /* an object that names a member twice is refused */
    TREE_REALS = 1 << 1,       /* every number becomes a real */
    TREE_NO_ZERO = 1 << 2,     /* a string with a zero byte is refused */
};

/* Returns a new reference, or NULL and why. An integer that is too large for one becomes a real; a
 * real that is too large for one, and a member's name with a zero byte, are refused. why may be
 * NULL. */
json_t *json_tree_read(struct slice text, unsigned options, struct failure *why);

/* Appends the tree as JSON without white space. NULL adds nothing. */
void json_tree_write(const json_t *tree, struct buf *out);
