/* ignored.h - collects unknown members and parameters, to report them to the caller.
 *
 *   {"options":{"tag":["a"]}}   ─►   x-ignored-members: options.tag
 *
 * A call with a member that the published schema lacks is not rejected. A response header
 * names that member, and so does the log at debug. Names are untrusted: anything that could
 * end a header line, or be mistaken for another part of a path, is percent-encoded, and
 * only a few names are kept. */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/slice.h"

enum { IGNORED_NAMES_MAX = 16, IGNORED_BYTES_MAX = 1024 };

/* The zero value is ready for use. */
struct ignored {
    struct buf names; /* "a, options.tag"; each name once */
    unsigned count;
};

/* Adds a member, unless its name was added already or would exceed a limit. where is the
 * path of its object: "" for the body, otherwise with a dot at the end. raw_key is JSON
 * text between quotes. Here and below, ignored may be NULL: then nothing happens. */
void ignored_add_member(struct ignored *ignored, const char *where, struct slice raw_key);

/* Adds all members of an object except the known ones; known ends with NULL. */
void ignored_add_others(struct ignored *ignored, const char *where, struct slice object,
                        const char *const *known);

/* Adds a parameter of the query, which is decoded. Its brackets are not encoded. */
void ignored_add_parameter(struct ignored *ignored, struct slice name);

void ignored_finish(struct ignored *ignored);
