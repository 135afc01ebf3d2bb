/* launch_order.h - a launcher's order as bytes: what to execute, and how.
 *
 * Texts in a fixed order, each with a terminating zero; both sides are the same binary. */
#pragma once

#include "base/buf.h"
#include "os/process/process.h"

struct launch_order {
    pid_t spawner;
    struct process_options options; /* except what the spawner handles: input, deadline */
};

void launch_order_write(const struct launch_order *order, struct buf *out);

/* Reads an order. Returns false if the bytes are not one. The texts are borrowed from the
 * bytes, the arrays are the caller's; a launcher frees nothing, because it executes another
 * program anyway. */
bool launch_order_read(struct slice bytes, struct launch_order *order);
