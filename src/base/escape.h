/* escape.h - writes a text as the inside of a JSON string (RFC 8259 §7).
 *
 * Works in one go or in steps of any size: a step returns how much of the text it consumed,
 * and the next one continues there. The text is UTF-8 and stays so. It may hold half of a
 * surrogate pair as its three bytes (WTF-8), which is escaped as \udXXX. A part of a text
 * must not begin or end between those three bytes. */
#pragma once

#include <stddef.h>

#include "base/bytes.h"

enum { ESCAPE_ROOM_LEAST = 64 }; /* with this much space, a step always makes progress */

/* Returns the length of the escaped text. */
size_t escape_len(struct slice text);

/* Returns the same for a text that is part of owner. All of owner is measured once and its
 * length cached there, so that a part costs no more than the rest of owner. Loop thread
 * only, or the thread that created owner and has not handed it over yet. */
size_t escape_len_within(struct bytes *owner, struct slice text);

/* Escapes as much from the beginning of the text as is sure to fit into room bytes of out.
 * Returns the number of bytes written; *taken: the bytes of text that they stand for. */
size_t escape_step(struct slice text, char *out, size_t room, size_t *taken);

/* Returns how many bytes of the text the first len escaped bytes stand for. *within: how
 * many of those len bytes belong to the next character, whose escape is cut. */
size_t escape_find(struct slice text, size_t len, size_t *within);
