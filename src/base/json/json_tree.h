/* json_tree.h - short JSON as a jansson tree, whose strings may hold text that jansson
 * rejects.
 *
 * jansson's reader rejects an escape of half a surrogate pair and, by default, an escaped
 * zero byte. Its writer rejects the bytes that stand for a half (scan.h). Here, a string of
 * the tree holds the bytes that scan_string decodes. Use its length (json_string_length,
 * not strlen). */
#pragma once

#include <jansson.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/slice.h"

/* Levels of nesting. Building a tree walks over the text once per enclosing level, and
 * building, writing and freeing recurse. Bodies of calls may be 64 deep (call.h). */
enum { TREE_DEPTH_MAX = 100 };

enum tree_options {
    TREE_ONE_OF_EACH = 1 << 0, /* an object that names a member twice is rejected */
    TREE_REALS = 1 << 1,       /* every number becomes a real */
    TREE_NO_ZERO = 1 << 2,     /* a string with a zero byte is rejected */
};

/* Returns a new reference; NULL if the text is rejected. why may be NULL. An integer that
 * is too large becomes a real. A real that is too large is rejected, and so is a member's
 * name with a zero byte. */
json_t *json_tree_read(struct slice text, unsigned options, struct failure *why);

/* Appends the tree as JSON without white space. Appends nothing for NULL. */
void json_tree_write(const json_t *tree, struct buf *out);
