/* omissions.h - joins the numbers of changes that the leader omits.
 *
 *   1000 changes of an environment that floods ─► one frame: REPL_OMITTED 1 … 1000
 *
 * A frame for each number would be shorter than its change, but a flood of short changes would
 * still use up a slow link. The numbers of an environment must be sent before its next frame,
 * and before any frame that is of no environment, or of the accounts. */
#pragma once

#include "core/replication/frames.h"

enum { OMISSIONS_MAX = 32 }; /* environments */

/* Zeroed before the first call. */
struct omissions {
    struct repl_passed list[OMISSIONS_MAX];
    size_t count;
};

/* Returns false if the list is full: send it before, and try again. */
bool omissions_add(struct omissions *omissions, const struct repl_passed *passed);

/* Returns true if the list must be sent before the frame. */
bool omissions_precede(const struct omissions *omissions, const struct repl_frame *frame);
