/* scan_text.h - compares strings by their decoded texts, for the other readers of scan.h.
 *
 * A raw text is what is between the quotes, with its escapes. */
#pragma once

#include <stdbool.h>

#include "base/slice.h"

bool scan_text_has_escape(struct slice raw);

/* Compares two raw texts by the bytes that they stand for, however these are spelled.
 * Returns less than, equal to or more than 0. */
int scan_text_compare(struct slice a, struct slice b);
