/* late_change.c - a commit that the engine applies once the store has synced it. */
#include "tests/support/world/late_change.h"

#include "core/engine/calls.h"
#include "tests/support/fakes/fake_store.h"
#include "tests/support/world/unit.h"

static void on_late_change(struct store_commit *commit, enum store_status status)
{
    struct late_change *late = container_of(commit, struct late_change, commit);
    assert_int_equal(status, STORE_OK);
    engine_apply(late->world->engine, &late->change, 1);
}

void change_late(struct world *world, struct late_change *late, const char *id)
{
    const struct run *stored = fake_store_run(world->fake, WORLD_ENV, id);
    *late = (struct late_change){
        .world = world,
        .change = { .kind = CHANGE_RUN, .env = WORLD_ENV, .expected = stored->version },
        .commit = { .change_count = 1,
                    .done = on_late_change,
                    .now_ms = loop_wall_ms(world->loop) }
    };
    run_copy(&late->change.run, stored);
    late->change.run.version++;
    late->commit.changes = &late->change;
    fake_store_set_delay(world->fake, 100, 0);
    world->store->ops->commit(world->store, &late->commit);
    world_pass(world, 60);
}
