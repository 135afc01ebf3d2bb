/* metadata.h - operations on a run's metadata, over byte spans.
 *
 * set, delete, append, remove, increment, update (management-api §10.6, worker-protocol
 * §1.7). Values that no operation touches keep their bytes. A key starting "$." is a JSON
 * path ($.a.b, $.list[0], $.a['b c']), otherwise a literal top-level key; keys that name
 * __proto__, constructor or prototype are refused. */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "base/slice.h"

/* Applies a JSON array of operations to a JSON object (absent: {}) and appends the result.
 * ERR_INVALID with the reason; nothing is appended then. Both inputs are valid JSON. */
enum err metadata_apply(struct slice object, struct slice operations, struct buf *out,
                        struct failure *why);

/* Nothing but a check of the operations. */
enum err metadata_check(struct slice operations, struct failure *why);
