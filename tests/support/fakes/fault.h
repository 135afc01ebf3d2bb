/* fault.h - "fail the third one".
 *
 * A countdown that each operation decreases. A loop over countdown = 1, 2, … until the
 * scenario passes without a trip makes every operation fail once. */
#pragma once

#include <stdbool.h>

/* The zero value never fails. */
struct fault {
    int countdown; /* trips when it goes from 1 to 0 */
    int repeat;    /* further failures after the first; -1: forever */
    bool tripped;
};

static inline bool fault_trips(struct fault *fault)
{
    if (fault->tripped && fault->repeat > 0)
        return fault->repeat--;
    if (fault->tripped)
        return fault->repeat < 0;
    fault->tripped = fault->countdown > 0 && --fault->countdown == 0;
    return fault->tripped;
}
