/* room.h - memory quotas: how much several users of memory may take together, nested.
 *
 *   request ─► room of its environment ─► outer: room of its project     what is taken
 *                                                                        counts in each
 *
 * A room only counts. Before taking, check room_has wherever the request can still be
 * refused. Give back as much as was taken, to the room from which it was taken. */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>

enum {
    BODY_ROOM = 128 << 20,   /* bytes of request bodies in progress, per credential */
    ANSWER_ROOM = 128 << 20, /* bytes of unsent responses, per project or person */

    /* Up to this, unsent bytes of a long-lived connection (socket, stream) do not count.
     * Many such connections are idle at any time, and most of these bytes are shared. */
    LITTLE_UNSENT = 128 << 10,
};

struct room {
    size_t used, limit; /* bytes */
    struct room *outer; /* outlives this one; NULL: none */
};

/* A room above whose limit the largest taker gives something back. */
struct trimmed_room {
    struct room room;
    void *largest; /* the largest taker, set by the owner; NULL: not searched yet */
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

/* Returns how much is used above the limit; 0 if the room is NULL. */
static inline size_t trimmed_room_surplus(const struct trimmed_room *trimmed)
{
    const struct room *room = trimmed ? &trimmed->room : NULL;
    return room && room->used > room->limit ? room->used - room->limit : 0;
}
