/* pushes.h - debounced triggers of a simulation, and their repetitions.
 *
 * Each trigger has one of a few debounce keys, is leading or trailing, and has a request key,
 * an idempotency key, or both; any may be repeated, with other options. Whatever is killed:
 *
 *   a debounce key    has at most one delayed run
 *   a repetition      has the id of the first answer, and changes nothing */
#pragma once

#include "core/engine/engine.h"
#include "tests/support/fakes/ledger.h"
#include "tests/support/world/sim.h"

enum { PUSHES_MAX = 48, PUSH_KEYS = 3 };

/* A debounced trigger. */
struct push_note {
    unsigned debounce_key;
    bool has_request, has_key; /* at least one */
    char id[ID_MAX];           /* as acknowledged; "": not yet */
};

struct pushes {
    struct world *world;
    struct ledger *ledger;
    struct draws *draws;
    struct push_note notes[PUSHES_MAX];
    unsigned count, sent, joined, repeated;
    unsigned *under_way; /* counts triggers in flight */
    const bool *dead;    /* no caller gets outcomes */
};

void pushes_init(struct pushes *pushes, struct world *world, struct draws *draws);

/* Begins a new trigger, or an earlier one again. */
void pushes_step(struct pushes *pushes);

/* At rest: repeats each acknowledged trigger. */
void pushes_check_repetitions(struct pushes *pushes);
