/* sim.c - the seeds of a simulation, one after the other, and the end of a failed one. */
#include "tests/support/world/sim.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"

char sim_title[64];

void violated(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    printf("not ok %s: ", sim_title);
    vprintf(format, args);
    printf("\n");
    va_end(args);
    fflush(stdout);
    _Exit(1);
}

static unsigned number_from(const char *name, unsigned otherwise)
{
    const char *text = getenv(name);
    uint64_t number;
    return text && !text_to_u64(slice_of(text), &number) ? (unsigned)number : otherwise;
}

int sim_run_seeds(void (*run_seed)(uint64_t seed), unsigned count)
{
    unsigned first = number_from("SEED", 1);
    count = number_from("SEEDS", count);
    printf("1..%u\n", count);
    for (unsigned i = 0; i < count; i++) {
        snprintf(sim_title, sizeof(sim_title), "%u - seed %u", i + 1, first + i);
        run_seed(first + i);
    }
    return 0;
}
