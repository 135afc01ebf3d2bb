/* share.h - counts long bytes in a memory quota (struct room) once, however many hold them.
 *
 *   answer ─┐
 *   answer ─┼─► bytes of a run ─► room: their length, once
 *   call   ─┘
 *
 * Each user holds a reference until it gives the bytes back. Loop thread only. */
#pragma once

#include "base/bytes.h"
#include "base/room.h"

/* Takes a reference, and counts the bytes in the room if they are not counted there yet.
 * Does nothing if either is NULL. */
void share_take(struct room *room, struct bytes *bytes);

/* Call this once for each share_take with that room. Does nothing if either is NULL. */
void share_give(struct room *room, struct bytes *bytes);
