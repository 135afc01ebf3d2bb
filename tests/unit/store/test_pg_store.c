/* PostgreSQL keeps the contract, and its word when connections, servers and leaders come and go.
 *
 * Each case has a schema of its own on one server, which the program starts. */
#include "store/pg/pg_store.h"

#include <stdio.h>
#include <uv.h>

#include "base/mem.h"
#include "tests/support/contract/store_contract.h"
#include "tests/support/world/pg_world.h"

struct server_world {
    struct store_world world;
    uv_loop_t loop;
    char schema[32];
    bool closed;
};

static struct server_world *opened; /* whose store is being closed */

static struct server_world *own_of(struct store_world *world)
{
    return container_of(world, struct server_world, world);
}

/* ---- opening and closing ---- */

static void turn(struct store_world *world)
{
    uv_run(&own_of(world)->loop, UV_RUN_ONCE);
}

static enum err open_as(struct server_world *own, const char *url, const char *name,
                        struct store **store, struct failure *why)
{
    struct pg_options options = { .database = url, .schema = own->schema, .name = name };
    return pg_store_open(&own->loop, &options, store, why);
}

static void open_store(struct server_world *own, const char *url)
{
    struct failure why = { 0 };
    if (open_as(own, url, "one", &own->world.store, &why))
        fail_msg("%s", why.text);
}

static void on_closed(struct store *store)
{
    (void)store;
    opened->closed = true;
}

static void close_this(struct server_world *own, struct store *store)
{
    opened = own;
    own->closed = false;
    store->ops->close(store, on_closed);
    while (!own->closed)
        uv_run(&own->loop, UV_RUN_ONCE);
}

static void close_store(struct server_world *own)
{
    close_this(own, own->world.store);
    own->world.store = NULL;
}

static void reopen(struct store_world *world)
{
    close_store(own_of(world));
    open_store(own_of(world), pg_world_url());
}

static int create_world(void **state)
{
    static int count;
    struct server_world *own = mem_new(struct server_world);
    own->world.turn = turn;
    own->world.reopen = reopen;
    uv_loop_init(&own->loop);
    snprintf(own->schema, sizeof(own->schema), "case_%d", ++count);
    *state = &own->world;
    return 0;
}

static int create_open_world(void **state)
{
    create_world(state);
    open_store(own_of(*state), pg_world_url());
    return 0;
}

static int destroy_world(void **state)
{
    struct server_world *own = own_of(*state);
    if (own->world.store)
        close_store(own);
    assert_int_equal(uv_loop_close(&own->loop), 0);
    pg_world_ask("SELECT 1");
    free(own);
    return 0;
}

int main(void)
{
    int failures = pg_world_set_up(NULL);
    failures +=
        store_contract_run("PostgreSQL: contract", create_open_world, destroy_world);
    pg_world_tear_down(NULL);
    return failures;
}
