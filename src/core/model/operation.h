/* operation.h - one operation on metadata, read from its JSON.
 *
 *   {"type": "increment", "key": "$.steps[0].done", "value": 2} */
#pragma once

#include "base/buf.h"
#include "base/json/scan.h"
#include "base/slice.h"

enum operation_type {
    OPERATION_SET,
    OPERATION_DELETE,
    OPERATION_APPEND,
    OPERATION_REMOVE,
    OPERATION_INCREMENT,
    OPERATION_UPDATE,
    OPERATION_TYPE_COUNT
};

enum { OPERATION_PARTS_MAX = 200 };

/* Zero it before the first operation_read; it can be reused. */
struct operation {
    enum operation_type type;
    struct buf key;                          /* without escapes; the parts point into it */
    struct slice parts[OPERATION_PARTS_MAX]; /* of the path; a literal key is one part */
    size_t part_count;                       /* 0 for update */
    struct slice value;                      /* borrowed from the JSON */
};

/* Returns what is wrong with the operation, or NULL. */
const char *operation_read(struct operation *operation, struct slice json);

void operation_finish(struct operation *operation);
