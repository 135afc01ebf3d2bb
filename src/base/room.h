/* room.h - memory quotas: how much several users of memory may take together, nested.
 *
 *   request ─► room of its environment ─► outer: room of its project     what is taken
 *                                                                        counts in each
 *
 * Preview branches have a room together, between their own rooms and the one of their
 * project: for the project, they are one environment.
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

    /* The preview branches of a project together may take 1/2 of what the project may. */
    BRANCHES_PART = 2,
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

/* Returns the innermost room that has less than len left; NULL if len fits into all. */
static inline const struct room *room_full(const struct room *room, size_t len)
{
    for (; room; room = room->outer)
        if (room->used >= room->limit || len > room->limit - room->used)
            return room;
    return NULL;
}

static inline bool room_has(const struct room *room, size_t len)
{
    return !room_full(room, len);
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

static inline bool room_is_inside(const struct room *room, const struct room *outer)
{
    while (room && room != outer)
        room = room->outer;
    return room;
}

/* Returns the room directly inside outer that contains the room, or is it. */
static inline const struct room *room_below(const struct room *room,
                                            const struct room *outer)
{
    while (room->outer != outer)
        room = room->outer;
    return room;
}

/* Returns true if a room has to give something back before another one, when the outer
 * room of both is full. The largest room directly inside the outer one gives, and in it
 * again the largest. So no party gives because another one has many small rooms. */
static inline bool room_gives_before(const struct room *room, const struct room *other,
                                     const struct room *outer)
{
    while (room != other) {
        const struct room *one = room_below(room, outer), *two = room_below(other, outer);
        if (one != two)
            return one->used > two->used;
        outer = one;
    }
    return false;
}

/* Returns how much is used above the limit; 0 if the room is NULL. */
static inline size_t trimmed_room_surplus(const struct trimmed_room *trimmed)
{
    const struct room *room = trimmed ? &trimmed->room : NULL;
    return room && room->used > room->limit ? room->used - room->limit : 0;
}
