/* loopback.h - measures how long this machine takes to send a message to many receivers.
 *
 * A child process on the processors of the measured server waits for a message on the first
 * connection and sends one of the same size on each. With one connection this is a bare
 * round trip. A server's latency is compared with it. */
#pragma once

#include <stddef.h>

#include "histogram.h"
#include "options.h"

/* Measures from the first message's send to the last connection's receive, `rounds`
 * times. */
void loopback_measure(const struct options *options, size_t connections, size_t rounds,
                      struct histogram *histogram);
