/* room.h - how much memory, or how many places, several may take together, inside of what more
 * may take together.
 *
 *   request ─► room of its environment ─► outer: room of its project     what is taken
 *                                                                        counts in each
 *
 * A room only counts: who takes asks room_has first where it can still refuse, and gives
 * back as much as it took to the room that it took it from. */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>

enum {
    BODY_ROOM = 128 << 20,   /* bodies under way, of whoever sends them by one credential */
    ANSWER_ROOM = 128 << 20, /* unsent answers of a project, or for a person */

    /* What a connection that lasts (a socket, a stream) has unsent counts nowhere up to this:
     * many with so little are asleep at any time, and most of it is shared. */
    LITTLE_UNSENT = 128 << 10,
};

struct room {
    size_t used, limit; /* bytes */
    struct room *outer; /* it lives longer; NULL: there is none */
};

/* A room from which the taker with most gives something back when more is used than the limit. */
struct trimmed_room {
    struct room room;
    void *largest; /* its owner's; NULL: not looked for */
};

static inline bool room_has(const struct room *room, size_t len)
{
    for (; room; room = room->outer)
        if (room->used >= room->limit || len > room->limit - room->used)
            return false;
    return true;
}

static inline void room_take(struct room *room, size_t len)
{
    for (; room; room = room->outer)
        room->used += len;
}

static inline void room_give(struct room *room, size_t len)
{
    for (; room; room = room->outer) {
        assert(room->used >= len);
        room->used -= len;
    }
}

/* How much more is used than the limit. There is none if the room is NULL. */
static inline size_t trimmed_room_surplus(const struct trimmed_room *trimmed)
{
    const struct room *room = trimmed ? &trimmed->room : NULL;
    return room && room->used > room->limit ? room->used - room->limit : 0;
}
