/* relays.h - metadata that a run of a simulation changes of itself and of those above it.
 *
 * Each relay counts up a key of its own in the run, its parent and its grandparent, by a
 * metadata request or with a completion. A request whose answer was lost or bad is asked
 * again. However often: all of them count once, or none does; and once if it was said. */
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
    unsigned *under_way; /* counts requests */
    const bool *dead;    /* outcomes reach nobody */
    unsigned count;
};

void relays_init(struct relays *relays, struct world *world, struct draws *draws);
void relays_finish(struct relays *relays);

/* A metadata request of some run, a child if one is found: a new one, or its last again. */
void relays_request(struct relays *relays);

/* A change that is under way; the caller's until its command is done. */
struct relay {
    struct change_metadata changes[3]; /* of the run, its parent, its grandparent */
    struct relay_note *note;           /* NULL: none */
    char operations[64], request[16];
};

/* Lets the completion, which is to begin next, change metadata; relay_join once it has. */
void relay_prepare(struct relays *relays, struct relay *relay, const struct story *story,
                   struct complete_attempt *op);
void relay_join(struct relay *relay, struct complete_attempt *op);

/* The answer was OK, and somebody heard it. */
void relay_acknowledge(struct relay *relay);

void relays_check(const struct relays *relays);
