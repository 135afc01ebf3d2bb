/* pg_absent.c - stands in for the PostgreSQL driver in a program built without libpq. */
#include "store/pg/pg_copy.h"
#include "store/pg/pg_reach.h"
#include "store/pg/pg_store.h"

static enum err pg_absent_refuse(struct failure *why)
{
    return explain(why, ERR_INVALID,
                   "this runcast was built without PostgreSQL; build it with libpq "
                   "(-DPOSTGRES=ON), or remove the setting database");
}

enum err pg_reach_of(const char *database, struct pg_reach *reach, struct failure *why)
{
    (void)database;
    (void)reach;
    return pg_absent_refuse(why);
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
    return pg_absent_refuse(why);
}

enum err pg_copy(const struct pg_options *options, struct sqlite_look *look,
                 struct pg_copy_files *files, const volatile sig_atomic_t *stopped,
                 struct pg_copied *copied, struct failure *why)
{
    (void)options;
    (void)look;
    (void)files;
    (void)stopped;
    (void)copied;
    return pg_absent_refuse(why);
}
