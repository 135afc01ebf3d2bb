/* run_error.h - a run's error as clients see it.
 *
 *   stored:  {"type":"BUILT_IN_ERROR","name":…,"message":…,"stackTrace":…}
 *            {"type":"INTERNAL_ERROR","code":…,"message":…}, {"type":"STRING_ERROR","raw":…}
 *   written: {"message":…,"name":…,"stackTrace":…}
 *
 * The code of an internal error is part of its message, because clients have no member for
 * it. */
#pragma once

#include "base/buf.h"
#include "base/bytes.h"

/* Appends {message, name?, stackTrace?} for a stored error, which must be valid JSON. */
void run_error_render(struct bytes *error, struct buf *out);
