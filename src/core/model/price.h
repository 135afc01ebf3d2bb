/* price.h - the cost of runs, in cents: once for the first start, and for each second.
 *
 * The price of a second depends on the machine. Runs in development cost nothing. */
#pragma once

#include "base/slice.h"
#include "runcast/run.h"

struct prices {
    double run;                       /* cents, once, at the first start */
    double per_second[MACHINE_COUNT]; /* cents */
};

static inline double prices_per_ms(const struct prices *prices, enum machine machine)
{
    return prices->per_second[machine] / 1000;
}

/* Reads a JSON number from 0 to PRICE_MAX, such as "0.0025". Returns false if the text is
 * invalid, and leaves *cents as it was. */
enum { PRICE_MAX = 1000000 };
bool price_read(struct slice text, double *cents);

/* Reads prices per second, such as "micro=0.002, large-1x=0.04". Machines that are not
 * named keep their price. "0": every machine is free. "": nothing changes. Returns false if
 * the list is invalid or names a machine twice, and leaves the prices as they were. */
bool prices_read_machines(struct slice list, struct prices *prices);
