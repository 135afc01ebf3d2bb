/* brackets.h - where a JSON container ends, sixty-four bytes at a time.
 *
 * Reading spans walks over the same text several times: at a nanosecond and a half for a
 * byte, a quarter of a megabyte would take a turn. So quotes, backslashes and brackets of
 * eight bytes are found at once, and brackets are only counted where the depth allows. */
#pragma once

#include <stdbool.h>

#include "base/slice.h"

/* Inside of so many containers, 1 or more: the bytes up to the bracket that closes the outermost
 * one, and with it; all of them when it never closes. The text begins outside of strings and
 * is part of valid JSON. */
size_t brackets_until_closed(struct slice text, size_t depth);

/* The depth grows above most somewhere. The text is valid JSON. */
bool brackets_deeper_than(struct slice text, size_t most);
