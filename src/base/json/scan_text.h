/* scan_text.h - the texts of strings, compared by the other readers of scan.h. A raw text is the one
 * between the quotes, its escapes undecoded. */
#pragma once

#include <stdbool.h>

#include "base/slice.h"

bool scan_text_has_escape(struct slice raw);

/* Compares two raw texts by the bytes that they stand for, so that the order is the same however
 * they are spelled. Returns less than, equal to or more than 0. */
int scan_text_compare(struct slice a, struct slice b);
