/* cluster_trace.h - prints the events of a simulated cluster, to follow a failing seed.
 *
 * TRACE=1 in the environment turns it on. A line has the virtual time in ms. */
#pragma once

struct cluster;

void cluster_trace(const struct cluster *cluster, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
