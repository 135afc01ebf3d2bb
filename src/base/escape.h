/* escape.h - what a text is between the quotes of a JSON string (RFC 8259 §7).
 *
 * All at once, or in steps of any size: a step says how much of the text it has taken, and
 * the next one continues there. The text is UTF-8 and stays so. It may hold half of a surrogate pair
 * as its three bytes (WTF-8), which is escaped as \udXXX: a part of a text must not begin or end
 * between those bytes. */
#pragma once

#include <stddef.h>

#include "base/bytes.h"

enum { ESCAPE_ROOM_LEAST = 64 }; /* with so much room a step always goes on */

/* Bytes of the escaped text. */
size_t escape_len(struct slice text);

/* The same of a part of these bytes. They are measured once, whole, and it is noted there;
 * then a part costs no more than the rest of them. Loop thread only, or whoever has made the
 * bytes and not handed them over yet. */
size_t escape_len_within(struct bytes *owner, struct slice text);

/* Escapes from the beginning of the text as much as surely fits, and returns the bytes that
 * were written; *taken: those of the text. */
size_t escape_step(struct slice text, char *out, size_t room, size_t *taken);

/* How many bytes of the text are escaped within the first len bytes; *within: how many of
 * those belong to the character behind, whose escape is not whole. */
size_t escape_find(struct slice text, size_t len, size_t *within);
