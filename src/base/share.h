/* share.h - long bytes take room once, however many hold them.
 *
 *   answer ─┐
 *   answer ─┼─► bytes of a run ─► room: their length, once
 *   call   ─┘
 *
 * Who takes them holds a reference until they are given back. Loop thread only. */
#pragma once

#include "base/bytes.h"
#include "base/room.h"

/* Takes a reference, and counts the bytes in the room if nobody has taken them there. Nothing
 * happens if either is NULL. */
void share_take(struct room *room, struct bytes *bytes);

/* As often as they were taken from that room. */
void share_give(struct room *room, struct bytes *bytes);
