/* dequeuing.h - long-polls the gateway for runs while this machine has capacity.
 *
 *   connect ─► dequeue, held by the gateway ─► on_message … ─► dequeue …
 *       ▲            │
 *       └─ back off ◄┴─ unreachable, or rejected       every 30 s: heartbeat
 *
 * Every dequeue carries an idempotency key. If its response is lost, the dequeue is sent
 * again with the same key, and the gateway returns the same run.
 *
 * A dequeue also states the free capacity (CPU and memory). If that changes while the
 * gateway holds the dequeue, it is canceled and sent again. Because the key is the same,
 * the gateway knows that the first one was abandoned. */
#pragma once

#include "base/loop.h"
#include "supervisor/gateway_client/gateway_client.h"

struct dequeuing;

/* Callbacks to the owner. */
struct dequeuing_events {
    /* Returns the machine presets that have room for one more run, as bits; 0: none. */
    unsigned (*capacity)(void *owner);
    /* Appends the most that one more run may take, as a JSON object. Returns false and
     * appends nothing if there is no limit. */
    bool (*write_capacity)(void *owner, struct buf *out);
    void (*on_message)(void *owner, struct slice message);
    /* Called when the gateway was reached or became unreachable, not for each call. why:
     * the reason; NULL if reached. */
    void (*on_reach)(void *owner, bool reached, const char *why);
};

struct dequeuing *dequeuing_create(struct loop *loop, struct gateway_client *gateway_client,
                                   const struct dequeuing_events *events, void *owner);

/* Sends or renews the dequeue if that is due. Call it when the capacity may have
 * changed. */
void dequeuing_look(struct dequeuing *dequeuing);

/* Sends nothing more and cancels the connect or dequeue in flight.
 *
 * A run that arrives anyway is still passed to on_message. */
void dequeuing_stop(struct dequeuing *dequeuing);

/* Returns true if no call is in flight. Becomes true some time after dequeuing_stop. */
bool dequeuing_is_idle(const struct dequeuing *dequeuing);

/* Requires dequeuing_is_idle. Ignores NULL. */
void dequeuing_destroy(struct dequeuing *dequeuing);
