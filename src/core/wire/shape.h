/* shape.h - a run as the row of a table, for the official SDKs' long poll.
 *
 *     {"key":"run_x","value":{"status":"EXECUTING",…},"headers":{"operation":"update"}}
 *
 * Every value is the text of a database column, or null. The
 * view's vocabulary says for whom: A is SDK 3.x, which throws at words newer than itself,
 * B 4.x. What must not be in a row, because the SDKs end the subscription over it, is put
 * right: content that is not the JSON its type says, errors of unknown kinds. */
#pragma once

#include "base/buf.h"
#include "core/wire/view.h"
#include "runcast/run.h"

/* Columns that are no field of their own, for view.skipped. */
enum {
    COLUMN_PAYLOAD_TYPE = 1 << FIELD_COUNT,
    COLUMN_OUTPUT_TYPE = 2 << FIELD_COUNT,
    COLUMN_METADATA_TYPE = 4 << FIELD_COUNT,
};

/* Appends one row with the columns of these fields; whole: all of the view, unset ones
 * null. */
void shape_add_row(const struct view *view, const struct run *run, uint32_t fields,
                   bool whole, struct buf *out);

/* Appends the JSON object of the columns' types, without the skipped ones. */
void shape_add_schema(uint32_t skipped, struct buf *out);

/* The bit of a column, for view.skipped, by its name or by that of the field of runs.v1 it
 * shows; 0: unknown, or never skipped. */
uint32_t shape_column(struct slice name, enum vocabulary vocabulary);
