/* shape.h - a run as the row of a table, for the long poll of the official SDKs.
 *
 *     {"key":"run_x","value":{"status":"EXECUTING",…},"headers":{"operation":"update"}}
 *
 * Every value is the text of a database column, or null. The view's vocabulary is that of
 * the SDK: A is SDK 3.x, which throws at unknown words, and B is 4.x. SDKs end the
 * subscription when content is not JSON although its type says so, or when an error is of
 * an unknown kind, so such values are corrected. */
#pragma once

#include "base/buf.h"
#include "core/wire/view.h"
#include "runcast/run.h"

/* Columns without a field, for view.skipped. */
enum {
    COLUMN_PAYLOAD_TYPE = 1 << FIELD_COUNT,
    COLUMN_OUTPUT_TYPE = 2 << FIELD_COUNT,
    COLUMN_METADATA_TYPE = 4 << FIELD_COUNT,
};

/* Appends one row with the columns of these fields. whole: all columns of the view, null if
 * unset. */
void shape_add_row(const struct view *view, const struct run *run, uint32_t fields,
                   bool whole, struct buf *out);

/* Appends the JSON object of the columns' types, without the skipped ones. */
void shape_add_schema(uint32_t skipped, struct buf *out);

/* Returns the bit of a column for view.skipped, by its name or by that of its field in
 * runs.v1; 0 if it is unknown or cannot be skipped. */
uint32_t shape_column(struct slice name, enum vocabulary vocabulary);
