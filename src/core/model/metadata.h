/* metadata.h - operations on a run's metadata, over byte spans.
 *
 * The operations are set, delete, append, remove, increment and update. Values that none of
 * them touches keep their bytes. A key starting "$." is a JSON path ($.a.b, $.list[0],
 * $.a['b c']), otherwise a literal top-level key. Keys that name __proto__, constructor or
 * prototype are refused.
 *
 * A malformed operation is an error, and so are operations that together would take longer
 * than about three milliseconds (removing an object from a list of 2,000 three times). One
 * that does not fit the object (a path through a number, remove where there is no array, a
 * sum beyond the range of JSON numbers) changes nothing, because its sender cannot know the
 * current object. */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "base/slice.h"

enum { METADATA_OPERATIONS_MAX = 1000 };

/* Applies a JSON array of operations to a JSON object (absent: {}) and appends the result.
 * Returns ERR_INVALID with the reason in why, and then appends nothing. Both inputs must be
 * valid JSON. The caller checks the size of the result. */
enum err metadata_apply(struct slice object, struct slice operations, struct buf *out,
                        struct failure *why);

/* Only checks the operations. */
enum err metadata_check(struct slice operations, struct failure *why);
