/* ignored.h - members and parameters that nobody reads, told to the caller.
 *
 *   {"options":{"tag":["a"]}}   ─►   x-ignored-members: options.tag
 *
 * A call is not refused for what the published schema does not name; it is told by a header,
 * and the log at debug. A name is a stranger's: what could end a header line or be taken for
 * another part of a path is percent-encoded, and few names are kept. */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/slice.h"

enum { IGNORED_NAMES_MAX = 16, IGNORED_BYTES_MAX = 1024 };

/* A zeroed one is ready. */
struct ignored {
    struct buf names; /* "a, options.tag": each once */
    unsigned count;
};

/* where is the path of the object, "" for the body and with its dot for others; the key is
 * JSON, between its quotes. One that was named before, or is too much, changes nothing. ignored
 * NULL, here and below: nobody listens. */
void ignored_add_member(struct ignored *ignored, const char *where, struct slice raw_key);

/* All members of an object but the known ones; NULL ends those. */
void ignored_add_others(struct ignored *ignored, const char *where, struct slice object,
                        const char *const *known);

/* Adds a parameter of the query, decoded: its brackets stay. */
void ignored_add_parameter(struct ignored *ignored, struct slice name);

void ignored_finish(struct ignored *ignored);
