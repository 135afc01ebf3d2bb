/* pg_absent.c - what takes the driver's place in a program that was built without libpq. */
#include "store/pg/pg_reach.h"
#include "store/pg/pg_store.h"

enum err pg_reach_of(const char *database, struct pg_reach *reach, struct failure *why)
{
    (void)database;
    (void)why;
    *reach = (struct pg_reach){ 0 };
    return OK;
}

void pg_reach_finish(struct pg_reach *reach)
{
    (void)reach;
}

enum err pg_store_open(struct uv_loop_s *loop, const struct pg_options *options,
                       struct store **store, struct failure *why)
{
    (void)loop;
    (void)options;
    (void)store;
    return explain(why, ERR_STORE,
                   "this runcast was built without PostgreSQL: build it with libpq "
                   "(-DPOSTGRES=ON), or leave the database out of the settings");
}
