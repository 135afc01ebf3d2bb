/* launch_order.h - the order of a launcher: what it executes, and how, as bytes.
 *
 * Texts with a zero behind each, in a fixed order: both sides are the same binary. */
#pragma once

#include "base/buf.h"
#include "os/process/process.h"

struct launch_order {
    pid_t spawner;
    struct process_options options; /* but for what the spawner sees to: input, deadline */
};

void launch_order_write(const struct launch_order *order, struct buf *out);

/* The texts are borrowed from the bytes, the arrays are the caller's; nothing is freed by who
 * executes something anyway. False: that is no order. */
bool launch_order_read(struct slice bytes, struct launch_order *order);
