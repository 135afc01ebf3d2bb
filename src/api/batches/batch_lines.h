/* batch_lines.h - reads a stream of items, one JSON object per line, as it arrives.
 *
 * A line is read once its end has arrived. If an item with the same index came before, only
 * the index is read. A line longer than BATCH_LINE_MAX becomes an item with too_large
 * set. */
#pragma once

#include "api/batches/batch.h"
#include "api/batches/open_batches.h"
#include "api/request/call.h"
#include "base/json/envelope.h"

enum { BATCH_LINE_MAX = 3145728 };

struct batch_lines {
    struct api_call *call;
    struct open_batches *open;
    struct environment *env;
    struct envelope line;
    size_t number;    /* of the current line, from 1 */
    size_t line_len;  /* bytes of the current line, including discarded ones */
    size_t line_cost; /* bytes reserved for the current line */
    /* the token may write the whole batch: items need no separate scope */
    bool may_write;
    struct batch_item *items[BATCH_RUNS_MAX]; /* by index */
    size_t count, repeated;
    uint32_t highest; /* index */
};

/* Takes the next piece. Returns ERR_INVALID (not JSON), ERR_RULE (not an item),
 * ERR_TOO_LARGE (a line too long to have an index and a task), ERR_FORBIDDEN, or
 * ERR_STORE (memory budget exhausted). */
enum err batch_lines_take(struct batch_lines *lines, struct slice piece);

/* Ends the stream. The last line need not end with a newline. Returns the same errors. */
enum err batch_lines_end(struct batch_lines *lines);

/* Returns ERR_STORE because the memory budget is exhausted; the response asks the client
 * to retry. */
enum err batch_lines_no_quota(struct api_call *call);

/* Frees the items that were not moved elsewhere, and their memory budget. Does not use
 * the call, which may be gone. */
void batch_lines_finish(struct batch_lines *lines);
