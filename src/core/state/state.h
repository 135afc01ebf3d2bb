/* state.h - the engine's options, ids and listeners, and how it stops. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/loop.h"
#include "core/live/environment.h"
#include "core/model/price.h"
#include "runcast/run.h"
#include "runcast/store.h"

struct engine;

struct engine_options {
    int64_t lease_ms;         /* from dequeue to start */
    int64_t heartbeat_ms;     /* max silence of an executing run */
    int64_t cancel_ms;        /* from cancel to its confirmation */
    int64_t dev_ttl_ms;       /* for runs in dev without a ttl; 0: none */
    uint32_t queue_size;      /* max unfinished runs per environment, per project four
                                 times as many; 0: no limit */
    uint32_t concurrency;     /* per environment */
    uint32_t dev_concurrency; /* per environment in dev, if that is less; 0: the same */
    size_t memory;            /* budget for finished runs, per environment */
    struct prices prices;     /* of runs outside of dev */
    /* Returns true if no other process can have written by now; called often, with the
     * owner. NULL: no other process can. */
    bool (*is_certain)(void *owner);
    /* Asks the leader for its position while this process follows another one
     * (certainty::ask). NULL: it never does. */
    uint64_t (*ask)(void *owner);
    /* Returns true if the leader that this gateway follows does not have the environment in
     * memory any more. NULL: this gateway never follows (engine_follow). */
    bool (*was_left)(void *owner, uint32_t number);
    void *owner;
};

const struct engine_options *engine_options(const struct engine *engine);
struct loop *engine_loop(const struct engine *engine);

/* Writes an id, prefix included, that sorts after every id made here and after those of all
 * loaded runs, even if these were made while the clock was ahead. Lists sorted by id are
 * thus in order of creation. */
void engine_make_id(struct engine *engine, const char *prefix, int64_t unix_ms,
                    char out[ID_MAX]);

struct store *engine_store(const struct engine *engine);

/* Certain while memory matches the store, as far as this process knows
 * (core/live/certainty.h). */
struct certainty *engine_certainty(struct engine *engine);

bool engine_is_retired(const struct environment *env);

/* Returns NULL if the environment is not in memory. */
struct environment *engine_environment(const struct engine *engine, uint32_t number);

bool engine_follows(const struct engine *engine);

/* Gives ready runs to waiting workers at the end of this turn. Call it after setting
 * limits. */
void engine_match(struct engine *engine, struct environment *env);

/* Refuses dequeues from now on. Operations in flight are completed, and so are the triggers
 * of requests accepted before. */
void engine_drain(struct engine *engine);
bool engine_draining(const struct engine *engine);

/* Deadlines no longer have an effect; the next start finds them in the store. */
void engine_stop(struct engine *engine);
bool engine_idle(const struct engine *engine);

/* Called, within the turn of the change, for each run in memory that has a new snapshot
 * which its worker did not request and must look at; called again for a repeated cancel.
 * One listener at a time; fn NULL: none. */
typedef void engine_notice_fn(void *owner, const struct tracked *run);
void engine_on_notice(struct engine *engine, engine_notice_fn *fn, void *owner);

/* Called for each change, in order, right before it is applied: of environments in memory, and
 * of the installation (ENV_INSTALLATION). before: the run as it is in memory; NULL: it is not
 * there, or the change is of a document. One listener at a time; fn NULL: none. */
typedef void engine_change_fn(void *owner, const struct run *before,
                              const struct change *change);
void engine_on_change(struct engine *engine, engine_change_fn *fn, void *owner);

/* Called after engine_drop_environment, with its number. One listener at a time; fn NULL:
 * none. */
typedef void engine_drop_fn(void *owner, uint32_t environment);
void engine_on_drop(struct engine *engine, engine_drop_fn *fn, void *owner);

/* Called when the tasks of an environment of developers have changed, or when one may now
 * count as missing (core/fleet/dev_sessions.h). One listener at a time; fn NULL: none. */
typedef void engine_sessions_fn(void *owner, struct environment *env);
void engine_on_sessions(struct engine *engine, engine_sessions_fn *fn, void *owner);
