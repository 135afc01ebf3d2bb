/* relays.h - metadata that a run of a simulation changes in itself and in its ancestors.
 *
 * Each relay increments its own key in the run, its parent and its grandparent, by a
 * metadata request or with a completion. A request that failed or got no response is
 * repeated. However often this happens, all three count once or none does; and once if it
 * was acknowledged. */
#pragma once

#include "core/engine/attempts.h"
#include "core/engine/run_commands.h"
#include "tests/support/fakes/ledger.h"
#include "tests/support/world/sim.h"

struct relays {
    struct world *world;
    struct ledger *ledger;
    struct draws *draws;
    struct list notes;   // relay_note::link; the newest is the last
    unsigned *under_way; /* counts requests in flight */
    const bool *dead;    /* no caller gets outcomes */
    unsigned count;
};

void relays_init(struct relays *relays, struct world *world, struct draws *draws);
void relays_finish(struct relays *relays);

/* Sends a metadata request to some run, a child if there is one: a new request, or the
 * run's last one again. */
void relays_request(struct relays *relays);

/* A change in flight; the caller owns it until its command is done. */
struct relay {
    struct change_metadata changes[3]; /* of the run, its parent, its grandparent */
    struct relay_note *note;           /* NULL: none */
    char operations[64], request[16];
};

/* Makes the next completion change metadata; call relay_join after it has begun. */
void relay_prepare(struct relays *relays, struct relay *relay, const struct story *story,
                   struct complete_attempt *op);
void relay_join(struct relay *relay, struct complete_attempt *op);

/* The result was OK, and its caller got it. */
void relay_acknowledge(struct relay *relay);

void relays_check(const struct relays *relays);
