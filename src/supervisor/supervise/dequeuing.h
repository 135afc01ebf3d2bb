/* dequeuing.h - asks the gateway for runs, one call at a time, as long as there is room.
 *
 *   connect ─► dequeue, held by the gateway ─► on_message … ─► dequeue …
 *       ▲            │
 *       └─ a pause ◄─┴─ away, or refused        every 30 s: heartbeat
 *
 * A call whose answer was lost is repeated under its key, and answered with the same run. One
 * that is held says what there is room for: when that is not so any more it is dropped, and asked
 * anew, also under its key, by which the gateway knows that nobody waits for the first answer. */
#pragma once

#include "base/loop.h"
#include "supervisor/gateway_client/upward.h"

struct dequeuing;

/* Functions of the owner. */
struct dequeuing_events {
    /* The machines of which one run more fits, as bits; 0: there is no room. */
    unsigned (*room)(void *owner);
    /* Appends what is left for one run, an object of JSON. False, and nothing: whatever the
     * run takes. */
    bool (*tell_room)(void *owner, struct buf *out);
    void (*on_message)(void *owner, struct slice message);
    /* The gateway answers, or does so no more. */
    void (*on_reach)(void *owner, bool reached, const char *why);
};

struct dequeuing *dequeuing_create(struct loop *loop, struct upward *upward,
                                   const struct dequeuing_events *events, void *owner);

/* There may be more or less room now. */
void dequeuing_look(struct dequeuing *dequeuing);

/* Asks no more; what was asked is dropped. A message that comes all the same is told. */
void dequeuing_stop(struct dequeuing *dequeuing);

/* Every call of it has ended: after dequeuing_stop, in a while. */
bool dequeuing_is_idle(const struct dequeuing *dequeuing);

/* It is idle. NULL is fine. */
void dequeuing_destroy(struct dequeuing *dequeuing);
