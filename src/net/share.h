/* share.h - counts long bytes in a memory quota once, however many users hold them.
 *
 *   answer ─┐
 *   answer ─┼─► bytes of a run ─► quota: their length, once
 *   call   ─┘
 *
 * Each user holds a reference until it gives the bytes back. Loop thread only. */
#pragma once

#include "base/bytes.h"
#include "base/quota.h"

/* Takes a reference, and counts the bytes in the quota if they are not counted there yet.
 * Does nothing if either is NULL. */
void share_take(struct quota *quota, struct bytes *bytes);

/* Call this once for each share_take with that quota. Does nothing if either is NULL. */
void share_give(struct quota *quota, struct bytes *bytes);
