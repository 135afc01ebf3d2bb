/* sqlite_store.c - the driver for the embedded database: one file, one process.
 *
 *   commit, purge ──► sqlite_writer   one thread, one connection, one fsync per group
 *   read          ──► sqlite_read     worker threads, a few connections
 *   position      ──► positions
 *
 * A lock file next to the database keeps other processes out. */
#include "store/sqlite/sqlite_store.h"

#include <unistd.h>

#include "base/mem.h"
#include "store/sqlite/sqlite_read.h"
#include "store/sqlite/sqlite_schema.h"
#include "store/sqlite/sqlite_writer.h"

struct sqlite_store {
    struct store store;
    struct sqlite_options options;
    char *path;
    int lock_fd;
    struct positions positions;
    struct sqlite_writer writer;
    struct sqlite_readers readers;
    void (*closed)(struct store *store);
};

static struct sqlite_store *sqlite_of(struct store *store)
{
    return container_of(store, struct sqlite_store, store);
}

/* ---- the operations ---- */

static void commit(struct store *store, struct store_commit *req)
{
    sqlite_writer_commit(&sqlite_of(store)->writer, store, req);
}

static void purge(struct store *store, struct store_purge *req)
{
    sqlite_writer_purge(&sqlite_of(store)->writer, req);
}

static void begin_read(struct store *store, struct store_read *req)
{
    sqlite_readers_begin(&sqlite_of(store)->readers, req);
}

static struct store_position position(struct store *store, uint32_t env)
{
    return positions_get(&sqlite_of(store)->positions, env);
}

/* ---- closing: first the readers, so that the writer's connection is the last one and
 * leaves a database without a log ---- */

static void free_store(struct sqlite_store *sqlite)
{
    positions_finish(&sqlite->positions);
    if (sqlite->lock_fd >= 0)
        close(sqlite->lock_fd);
    free(sqlite->path);
    free(sqlite);
}

static void on_writer_stopped(struct sqlite_writer *writer)
{
    struct sqlite_store *sqlite = container_of(writer, struct sqlite_store, writer);
    close(sqlite->lock_fd);
    sqlite->lock_fd = -1;
    sqlite->closed(&sqlite->store);
    free_store(sqlite);
}

static void on_readers_stopped(struct sqlite_readers *readers)
{
    struct sqlite_store *sqlite = container_of(readers, struct sqlite_store, readers);
    sqlite_writer_stop(&sqlite->writer, on_writer_stopped);
}

static void close_store(struct store *store, void (*closed)(struct store *store))
{
    struct sqlite_store *sqlite = sqlite_of(store);
    sqlite->closed = closed;
    sqlite_readers_stop(&sqlite->readers, on_readers_stopped);
}

static const struct store_ops sqlite_ops = {
    .name = "sqlite",
    .commit = commit,
    .read = begin_read,
    .purge = purge,
    .position = position,
    .close = close_store,
};

/* ---- opening ---- */

static bool read_positions(struct sqlite_store *sqlite)
{
    struct sqlite_db *db = &sqlite->writer.db;
    sqlite3_stmt *stmt = sqlite_db_stmt(db, SQL_POSITIONS);
    int code = SQLITE_ERROR;
    while (stmt && (code = sqlite3_step(stmt)) == SQLITE_ROW) {
        struct store_position position = {
            .env = (uint32_t)sqlite3_column_int64(stmt, 0),
            .seq = (uint64_t)sqlite3_column_int64(stmt, 1),
            .purged = (uint64_t)sqlite3_column_int64(stmt, 2),
            .floor = sqlite3_column_int64(stmt, 3),
            .stored = sqlite3_column_int64(stmt, 4),
        };
        positions_put(&sqlite->positions, position);
    }
    sqlite3_reset(stmt);
    return code == SQLITE_DONE;
}

static enum err open_database(struct sqlite_store *sqlite, struct failure *why)
{
    struct sqlite_db *db = &sqlite->writer.db;
    if (sqlite_lock_file(sqlite->path, &sqlite->lock_fd, why) ||
        sqlite_db_open(db, &sqlite->options, SQLITE_WRITER, why))
        return why->code;
    if (sqlite_schema_upgrade(db, &sqlite_schema, sqlite->path, why))
        return why->code;
    if (!sqlite_db_take_epoch(db, SQL_EPOCH, sqlite->store.epoch) ||
        !read_positions(sqlite))
        return explain(why, ERR_STORE, "cannot read %s: %s", sqlite->path,
                       sqlite3_errmsg(db->handle));
    return OK;
}

enum err sqlite_store_open(struct uv_loop_s *loop, const struct sqlite_options *options,
                           struct store **store, struct failure *why)
{
    struct sqlite_store *sqlite = mem_new(struct sqlite_store);
    sqlite->path = mem_text(slice_of(options->path));
    sqlite->options = *options;
    sqlite->options.path = sqlite->path;
    sqlite->lock_fd = -1;
    sqlite->store.ops = &sqlite_ops;
    commit_report_init(&sqlite->writer.report, &sqlite->store, &sqlite->positions);
    sqlite->writer.options = &sqlite->options;

    if (open_database(sqlite, why))
        goto fail;
    if (sqlite_readers_open(&sqlite->readers, &sqlite->store, loop, &sqlite->options, why))
        goto fail;
    if (sqlite_writer_start(&sqlite->writer, loop, why))
        goto fail_readers;
    *store = &sqlite->store;
    return OK;

fail_readers:
    sqlite_readers_finish(&sqlite->readers);
fail:
    sqlite_db_close(&sqlite->writer.db);
    free_store(sqlite);
    return why->code;
}

enum err sqlite_store_renew_epoch(const char *path, char epoch[17], struct failure *why)
{
    struct sqlite_store sqlite = { .path = mem_text(slice_of(path)), .lock_fd = -1 };
    struct sqlite_db *db = &sqlite.writer.db;
    sqlite.options.path = sqlite.path;
    enum err refused = open_database(&sqlite, why);
    if (!refused && !sqlite_db_take_epoch(db, SQL_RENEW_EPOCH, epoch))
        refused = explain(why, ERR_STORE, "cannot write %s: %s", path,
                          sqlite3_errmsg(db->handle));
    sqlite_db_close(db);
    positions_finish(&sqlite.positions);
    if (sqlite.lock_fd >= 0)
        close(sqlite.lock_fd);
    free(sqlite.path);
    return refused;
}

enum err sqlite_store_hold(const char *path, int *fd, struct failure *why)
{
    struct sqlite_options options = { .path = path };
    struct sqlite_db db;
    enum err refused = sqlite_lock_file(path, fd, why);
    if (refused)
        return refused;
    refused = sqlite_db_open(&db, &options, SQLITE_WRITER, why);
    if (!refused) {
        refused = sqlite_schema_upgrade(&db, &sqlite_schema, path, why);
        sqlite_db_close(&db);
    }
    if (refused)
        close(*fd);
    return refused;
}
