/* world.h - everything above the database in one place: a stepped loop, the fake store, the
 * engine, one environment. A test moves the clock; nothing happens by itself. */
#pragma once

#include "api/schedules/schedules.h"
#include "core/engine/engine.h"
#include "tests/support/fakes/fake_store.h"

enum { WORLD_ENV = 1 };

struct world {
    struct loop *loop;
    struct fake_store *fake;
    struct store *store;
    struct engine *engine;
    struct schedules *schedules;
    struct environment *env;
    struct engine_options options;
    bool is_prod;
    struct list readers; // reader::link
};

/* What a world is made of; the zero value of a member stands for its default. */
struct world_options {
    struct engine_options engine; /* 60 s lease, 5 min heartbeat, 64 MiB of finished runs */
    bool is_prod;
    /* The store that stands before the fake one; NULL: none. */
    struct store *(*wrap)(struct world *world);
};

/* Both clocks stand at world_start_ms. */
extern const int64_t world_start_ms;
struct world *world_create(const struct world_options *options); /* NULL: defaults */

/* Readers leave, then everything is taken down. Asserts that nothing was left behind. */
void world_destroy(struct world *world);

/* Both clocks go on by ms, in one turn; then turns follow until nothing is left to do. */
void world_pass(struct world *world, int64_t ms);
void world_settle(struct world *world);

/* The engine and its environment end when nothing is under way any more; readers have left.
 * They begin again as after a restart: the unfinished runs are loaded, and finished ones
 * while they fit into half of the budget. */
void world_stop(struct world *world);
void world_start(struct world *world);
void world_restart(struct world *world);

/* ---- changes made by hand, through the store; each call is one commit ---- */

/* A run of version 1, queued, of task "hello", with tags "a,b" (NULL: none). */
void create(struct world *world, const char *id, const char *tags);
void create_of(struct world *world, const char *id, const char *task, const char *batch);

/* The next version of the run, which must be this one: its duration grows. */
void change(struct world *world, const char *id, uint32_t version);

/* The next version of each, in this order, in one turn: ids separated by spaces. */
void change_all(struct world *world, const char *ids);

/* The next version: completed, with an output of so many bytes. */
void finish_run(struct world *world, const char *id, size_t output);

void add_tag(struct world *world, const char *id, const char *tag);
void set_metadata(struct world *world, const char *id, const char *json);

/* run_001 to run_<count>, each a commit of its own. */
void create_many(struct world *world, unsigned count, const char *tags);
