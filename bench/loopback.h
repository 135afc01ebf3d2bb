/* loopback.h - what the machine itself takes to bring one message to many.
 *
 * A child process that does nothing else, on the processors of the measured server: it
 * waits for a message on the first connection and sends one of the same size on each. With
 * one connection that is a bare round trip. A latency of a server is read beside it. */
#pragma once

#include <stddef.h>

#include "histogram.h"
#include "options.h"

/* From the first message's send to the last connection's receive, rounds times. */
void loopback_measure(const struct options *options, size_t connections, size_t rounds,
                      struct histogram *histogram);
