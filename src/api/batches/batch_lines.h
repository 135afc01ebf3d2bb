/* batch_lines.h - a stream of items, one JSON object a line, as it arrives.
 *
 * A line is read when its end has come; of lines with an index that came before only the
 * index is. A line above the limit becomes an item that says so. */
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
    size_t number;    /* of the line, from 1 */
    size_t line_len;  /* bytes, also those not kept */
    size_t line_cost; /* bytes that it is counted with meanwhile */
    bool may_write;   /* the whole batch: items need no scope of their own */
    struct batch_item *items[BATCH_RUNS_MAX]; /* by index */
    size_t count, repeated;
    uint32_t highest; /* index */
};

/* ERR_INVALID: not JSON. ERR_RULE: not an item. ERR_FORBIDDEN. ERR_STORE: no room. */
enum err batch_lines_take(struct batch_lines *lines, struct slice piece);

/* The last line may have no end. */
enum err batch_lines_end(struct batch_lines *lines);

/* Says that there is no room; the answer asks to come again. */
enum err batch_lines_no_room(struct api_call *call);

/* Items that nobody took are dropped. The call may be gone. */
void batch_lines_finish(struct batch_lines *lines);
