/* world.h - an engine with one environment, over the fake store and a stepped loop.
 *
 * The test moves the clock; nothing happens by itself. */
#pragma once

#include "api/schedules/schedules.h"
#include "core/engine/engine.h"
#include "tests/support/fakes/fake_store.h"

enum { WORLD_ENV = 1 };
#define WORLD_SINGLETON "task/once" /* a queue (world_options::singleton) */

struct world {
    struct loop *loop;
    struct fake_store *fake;
    struct store *store;
    struct engine *engine;
    struct schedules *schedules;
    struct environment *env;
    struct engine_options options;
    bool is_prod;
    enum singleton singleton;
    struct list readers; // reader::link
    /* A start puts the runs into memory first, as a follower does, and then takes the lead. */
    bool takes_over;
};

/* Parts of a world; the zero value of a member stands for its default. */
struct world_options {
    struct engine_options engine; /* 60 s lease, 5 min heartbeat, 64 MiB of finished runs */
    bool is_prod;
    enum singleton
        singleton; /* the strategy of the queue WORLD_SINGLETON, also after starts */
    /* Returns the store in front of the fake one. NULL: none. */
    struct store *(*wrap)(struct world *world);
};

/* Both clocks stand at world_start_ms. */
extern const int64_t world_start_ms;
struct world *world_create(const struct world_options *options); /* NULL: defaults */

/* Lets readers leave, then destroys everything. Asserts that nothing is left. */
void world_destroy(struct world *world);

/* Advances both clocks by ms, in one turn; then runs turns until nothing is left to do. */
void world_pass(struct world *world, int64_t ms);
void world_settle(struct world *world);

/* world_stop destroys the engine and its environment once nothing is in flight; readers
 * must have left. world_start begins again as after a restart: it loads the unfinished
 * runs, and finished ones while they fit into half of the budget. */
void world_stop(struct world *world);
void world_start(struct world *world);
void world_restart(struct world *world);

/* ---- changes made by hand, through the store; each call is one commit ---- */

/* Creates a run of version 1, queued, of task "hello", with tags "a,b" (NULL: none). */
void create(struct world *world, const char *id, const char *tags);
void create_of(struct world *world, const char *id, const char *task, const char *batch);

/* Writes the next version of the run, which must be this one: its duration grows. */
void change(struct world *world, const char *id, uint32_t version);

/* Writes the next version of each, in this order, in one turn: ids separated by spaces. */
void change_all(struct world *world, const char *ids);

/* Writes the next version: completed, with an output of that many bytes. */
void finish_run(struct world *world, const char *id, size_t output);

void add_tag(struct world *world, const char *id, const char *tag);
void set_metadata(struct world *world, const char *id, const char *json);

/* Creates run_001 to run_<count>, each in a separate commit. */
void create_many(struct world *world, unsigned count, const char *tags);
