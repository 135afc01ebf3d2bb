/* life.h - one life of a gateway without its socket, over a store that outlives it.
 *
 * Its start loads the state, and does the work that follows from it. */
#pragma once

#include <stdio.h>

#include "api/schedules/schedules.h"
#include "server/memory/load.h"

struct life {
    struct loop *loop;
    struct store *store;
    struct vault *vault;
    struct accounts *accounts;
    struct engine *engine;
    struct schedules *schedules;
    struct auth *auth;
    struct api *api;
    FILE *keys;
    struct first_start first;
    struct load_accounts load_accounts;
    struct load_runs load_runs;
    enum err status; /* of the load */
    struct failure why;
    bool done;
    unsigned turns; /* turns that the load took */
};

/* Loads, and creates the first accounts in an empty store. memory: bytes for finished runs;
 * 0: 64 MiB. */
void life_begin(struct life *life, struct loop *loop, struct store *store, size_t memory);

/* Loads again, as a gateway that has followed a leader, and takes the lead with what it has in
 * memory. */
void life_take_lead(struct life *life, bool all_is_there, bool knows_newest);

/* Does the work of a start after the load, until nothing is left to do. */
void life_start(struct life *life);

/* Runs turns until the condition holds; then until nothing is left to do. */
void life_wait(struct life *life, const bool *done);
void life_settle(struct life *life);

void life_end(struct life *life);
