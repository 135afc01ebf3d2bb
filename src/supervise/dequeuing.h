/* dequeuing.h - asks the gateway for runs, one call at a time, as long as there is room.
 *
 *   connect ─► dequeue, held by the gateway ─► on_message … ─► dequeue …
 *       ▲            │
 *       └─ a pause ◄─┴─ away, or refused        every 30 s: heartbeat
 *
 * A call whose answer was lost is repeated under its key, and answered with the same run. */
#pragma once

#include "base/loop.h"
#include "supervise/upward.h"

struct dequeuing;

/* Functions of the owner. */
struct dequeuing_events {
    bool (*has_room)(void *owner);
    /* What is left, and used. */
    void (*tell_room)(void *owner, struct buf *out);
    void (*on_message)(void *owner, struct slice message);
    /* The gateway answers, or does so no more. */
    void (*on_reach)(void *owner, bool reached, const char *why);
};

struct dequeuing *dequeuing_create(struct loop *loop, struct upward *upward,
                                   const struct dequeuing_events *events, void *owner);

/* There may be room now. */
void dequeuing_look(struct dequeuing *dequeuing);

/* Asks no more; what was asked is dropped. A message that comes all the same is told. */
void dequeuing_stop(struct dequeuing *dequeuing);

/* Every call of it has ended: after dequeuing_stop, in a while. */
bool dequeuing_is_idle(const struct dequeuing *dequeuing);

/* It is idle. NULL is fine. */
void dequeuing_destroy(struct dequeuing *dequeuing);
