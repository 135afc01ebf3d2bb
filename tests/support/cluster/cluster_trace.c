/* cluster_trace.c - one line for each event, if that is wanted. */
#include "tests/support/cluster/cluster_trace.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/support/cluster/cluster.h"

void cluster_trace(const struct cluster *cluster, const char *format, ...)
{
    va_list args;
    if (!getenv("TRACE"))
        return;
    va_start(args, format);
    printf("# %6lld ", (long long)cluster->network.now);
    vprintf(format, args);
    printf("\n");
    va_end(args);
}
