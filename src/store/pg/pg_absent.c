/* pg_absent.c - what takes the driver's place in a program that was built without libpq. */
#include "store/pg/pg_store.h"

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
