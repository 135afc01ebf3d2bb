/* brackets.h - where a JSON container ends, sixty-four bytes at a time.
 *
 * Reading spans walks over the same text several times: at a nanosecond and a half for a
 * byte, a quarter of a megabyte would take a turn. So quotes, backslashes and brackets of
 * eight bytes are found at once, and brackets are only counted where the depth allows. */
#pragma once

#include <stdbool.h>

#include "base/slice.h"

/* The text begins inside of `depth` containers, 1 or more: how many bytes there are up to the
 * bracket that closes the outermost of them, and with it; all when it never closes. The text
 * begins outside of strings and is part of valid JSON. */
size_t brackets_until_closed(struct slice text, size_t depth);

/* True when containers lie deeper than `most` in one another somewhere. The text is valid JSON. */
bool brackets_deeper_than(struct slice text, size_t most);
