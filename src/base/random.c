/* random.c - numbers from getrandom(2), redrawn where small ones would be favored. */
#include "base/random.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

static uint64_t draw(void)
{
    uint64_t drawn;
    while (getrandom(&drawn, sizeof(drawn), 0) != sizeof(drawn))
        if (errno != EINTR)
            abort();
    return drawn;
}

/* Draws above the last whole multiple of bound would make low numbers likelier. */
uint64_t random_below(uint64_t bound)
{
    assert(bound > 0);
    uint64_t excess = (UINT64_MAX % bound + 1) % bound, drawn;
    do
        drawn = draw();
    while (drawn > UINT64_MAX - excess);
    return drawn % bound;
}
