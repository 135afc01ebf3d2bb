/* show_msgpack.h - msgpack as text, so that a test compares the values that a client
 * sees. */
#pragma once

#include "base/buf.h"

/* Appends every value in the bytes, separated by spaces: maps, arrays, numbers and
 * strings as JSON, a timestamp as @seconds.nanoseconds, anything else as "?". Returns
 * false if the bytes are not whole values. */
bool show_msgpack(struct slice bytes, struct buf *out);
