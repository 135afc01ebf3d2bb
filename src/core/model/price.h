/* price.h - what runs cost, in cents: a price for the first start, and one for each second on a
 * machine. Runs in development cost nothing. */
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

/* "0.0025": 0 to PRICE_MAX, a number as JSON has it. False: it is none, and *cents is left
 * as it was. */
enum { PRICE_MAX = 1000000 };
bool price_read(struct slice text, double *cents);

/* "micro=0.002, large-1x=0.04": the machines that are named get another price per second,
 * the last one that is said of each. "0": none costs anything. "": nothing changes. False:
 * it is no such list, and the prices are left as they were. */
bool prices_read_machines(struct slice list, struct prices *prices);
