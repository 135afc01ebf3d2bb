/* pg_store.c - the driver for PostgreSQL.
 *
 *   commit, purge ──► pg_writer     a few connections; an environment always uses the same
 *   read          ──► pg_read       a few others
 *   beat, lead    ──► pg_beat       a separate one
 *   file          ──► pg_files      a separate one, opened when needed
 *   position      ──► positions     of the environments it leads
 *
 * A process joins under a name, and must lead before it writes. Each group carries the term
 * that the process got with the lead, and the database rejects groups from earlier
 * terms. */
#include "store/pg/pg_store.h"

#include "base/log.h"
#include "base/mem.h"
#include "store/pg/pg_beat.h"
#include "store/pg/pg_files.h"
#include "store/pg/pg_read.h"
#include "store/pg/pg_schema.h"
#include "store/pg/pg_writer.h"

struct pg_store {
    struct store store;
    struct pg_options options;
    struct positions positions;
    struct pg_lead lead;
    struct pg_writers writers;
    struct pg_readers readers;
    struct pg_files files;
    struct pg_beats beats;
    void (*closed)(struct store *store);
};

static struct pg_store *pg_of(struct store *store)
{
    return container_of(store, struct pg_store, store);
}

/* ---- the operations ---- */

static void commit(struct store *store, struct store_commit *req)
{
    pg_writers_commit(&pg_of(store)->writers, store, req);
}

static void purge(struct store *store, struct store_purge *req)
{
    pg_writers_purge(&pg_of(store)->writers, req);
}

static void begin_read(struct store *store, struct store_read *req)
{
    pg_readers_begin(&pg_of(store)->readers, req);
}

static struct store_position position(struct store *store, uint32_t env)
{
    return positions_get(&pg_of(store)->positions, env);
}

static void beat(struct store *store, struct store_beat *req)
{
    pg_beats_beat(&pg_of(store)->beats, req);
}

static void take_lead(struct store *store, struct store_lead *req)
{
    pg_beats_take(&pg_of(store)->beats, req);
}

static void leave(struct store *store, struct store_leave *req)
{
    pg_of(store)->writers.leaves = true;
    pg_beats_leave(&pg_of(store)->beats, req);
}

static void forget(struct store *store, struct store_forget *req)
{
    pg_beats_forget(&pg_of(store)->beats, req);
}

static void recount(struct store *store, struct store_recount *req)
{
    pg_beats_recount(&pg_of(store)->beats, req);
}

static void renew(struct store *store, struct store_renew *req)
{
    pg_beats_renew(&pg_of(store)->beats, req);
}

static void begin_history(struct store *store, const char epoch[17])
{
    struct pg_store *pg = pg_of(store);
    const struct pg_hello *hello = &pg->beats.link.hello;
    memcpy(store->epoch, epoch, sizeof(store->epoch));
    memcpy(pg->writers.timeline, hello->timeline, sizeof(hello->timeline));
    pg_lead_begin_history(&pg->lead);
    pg_readers_begin_history(&pg->readers, hello->timeline);
}

static void file(struct store *store, struct store_file *req)
{
    pg_files_ask(&pg_of(store)->files, req);
}

/* ---- closing ---- */

static void limit_wait(struct store *store)
{
    pg_writers_limit_wait(&pg_of(store)->writers);
}

static void free_store(struct pg_store *pg)
{
    positions_finish(&pg->positions);
    pg_lead_finish(&pg->lead);
    free(pg);
}

static void on_beats_stopped(struct pg_beats *beats)
{
    struct pg_store *pg = container_of(beats, struct pg_store, beats);
    pg->closed(&pg->store);
    free_store(pg);
}

/* Beats stop last: that removes our row, so nothing may be in progress by then. */
static void on_writers_stopped(struct pg_writers *writers)
{
    struct pg_store *pg = container_of(writers, struct pg_store, writers);
    pg_beats_stop(&pg->beats, on_beats_stopped);
}

static void on_files_stopped(struct pg_files *files)
{
    struct pg_store *pg = container_of(files, struct pg_store, files);
    pg_writers_stop(&pg->writers, on_writers_stopped);
}

static void on_readers_stopped(struct pg_readers *readers)
{
    struct pg_store *pg = container_of(readers, struct pg_store, readers);
    pg_files_stop(&pg->files, on_files_stopped);
}

static void close_store(struct store *store, void (*closed)(struct store *store))
{
    pg_of(store)->closed = closed;
    pg_readers_stop(&pg_of(store)->readers, on_readers_stopped);
}

static const struct store_ops pg_ops = {
    .name = "postgres",
    .commit = commit,
    .read = begin_read,
    .purge = purge,
    .position = position,
    .beat = beat,
    .lead = take_lead,
    .leave = leave,
    .forget = forget,
    .recount = recount,
    .renew = renew,
    .begin_history = begin_history,
    .file = file,
    .limit_wait = limit_wait,
    .close = close_store,
};

/* ---- opening ---- */

/* Without a synchronous standby, a failover would lose changes, and clients would have
 * positions that mean other changes. */
static void warn_of_loss(const struct pg_options *options, PGconn *conn)
{
    int64_t is_named = pg_run_number(conn,
                                     "SELECT count(*) FROM pg_settings WHERE name ="
                                     " 'synchronous_standby_names' AND setting <> ''",
                                     1);
    if (options->lossless && !is_named)
        log_warn("failover is lossless, but the database has no synchronous standby; set "
                 "synchronous_standby_names there",
                 NULL);
}

/* Uses the connection that the store begins with. pg_hello must come after the schema was
 * created, because it needs its types. */
static enum err pg_store_begin(struct pg_store *pg, PGconn *conn, struct pg_hello *hello,
                               struct failure *why)
{
    if (pg_schema_prepare(conn, &pg->options, hello, pg->store.epoch, why) ||
        pg_lead_join(&pg->lead, conn, &pg->options, why) ||
        pg_hello(conn, &pg->options, hello, why))
        return why->code;
    if (!pg->options.stands_by && pg_lead_begin(&pg->lead, conn, &pg->options, why))
        return why->code;
    pg->store.term = pg->lead.term;
    return OK;
}

enum err pg_store_open(struct uv_loop_s *loop, const struct pg_options *options,
                       struct store **store, struct failure *why)
{
    struct pg_store *pg = mem_new(struct pg_store);
    struct pg_hello hello;
    pg->options = *options;
    pg->store.ops = &pg_ops;
    pg->lead.positions = &pg->positions;
    pg->writers.options = pg->readers.options = &pg->options;
    pg->writers.lead = &pg->lead;
    pg->readers.store = &pg->store;
    pg->files.store = &pg->store;
    pg->files.lead = pg->beats.lead = &pg->lead;
    pg->beats.store = &pg->store;
    pg->beats.timeline = pg->writers.timeline;
    commit_report_init(&pg->writers.report, &pg->store, &pg->positions);

    PGconn *conn = pg_connect(&pg->options, NULL, &hello, why);
    if (!conn)
        goto fail;
    warn_of_loss(&pg->options, conn);
    if (pg_store_begin(pg, conn, &hello, why) ||
        pg_writers_start(&pg->writers, loop, conn, &hello, why))
        goto fail_conn;
    pg_readers_start(&pg->readers, loop);
    pg_files_start(&pg->files, loop, &pg->options);
    pg_beats_start(&pg->beats, loop, &pg->options);
    *store = &pg->store;
    return OK;

fail_conn:
    PQfinish(conn);
fail:
    free_store(pg);
    return why->code;
}
