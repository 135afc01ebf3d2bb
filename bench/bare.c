/* bare.c - measures how fast SQLite alone writes, for comparison with triggers and changes.
 *
 *   a gateway's database, after triggers ─► its newest run ─┬► copies of it, N per transaction
 *                                                           └► its metadata, every 1 / rate s
 *
 * Each copy has its own id, number, positions and payload; a change has the next position.
 * Each transaction also updates the counters that a trigger or a change updates. Statements
 * are prepared once. Neither network nor HTTP is involved. Commits are synced like the
 * gateway's. Unlike in the gateway, SQLite checkpoints by itself, and no other process may have the
 * database open, so a running gateway is refused. */
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "commands.h"
#include "histogram.h"
#include "poller.h"
#include "report.h"

enum {
    COLUMNS_MAX = 128,
    ID_CHARS = 64,
    COUNTER_CHARS = 8,
    MOVING = 5,
    RUNS_OF_A_TRANSACTION = 32,
};

/* Columns whose values grow from copy to copy. */
static const char *const moving[MOVING] = { "rev", "whole_rev", "metadata_rev", "number",
                                            "queue_position" };

/* The statement that inserts a copy of a model row into a table. */
struct copier {
    sqlite3_stmt *insert;
    int id, moving[MOVING]; /* parameters, from 1 */
    int moving_count;
};

struct bare {
    sqlite3 *db;
    struct copier run, payload;
    sqlite3_stmt *begin, *commit, *counters, *number, *change, *metadata;
    char id[ID_CHARS];        /* of the model, then of the copy */
    int64_t highest;          /* highest rev of any run: all numbers above it are free */
    int64_t written;          /* copies or changes */
    struct histogram latency; /* of a transaction */
    struct report report;
};

static void check(const struct bare *bare, bool done)
{
    if (!done)
        fatal("--database: %s", sqlite3_errmsg(bare->db));
}

static sqlite3_stmt *prepare(const struct bare *bare, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    check(bare, sqlite3_prepare_v2(bare->db, sql, -1, &statement, NULL) == SQLITE_OK);
    return statement;
}

static void run_once(const struct bare *bare, sqlite3_stmt *statement)
{
    int status = sqlite3_step(statement);
    check(bare, status == SQLITE_DONE || status == SQLITE_ROW);
    sqlite3_reset(statement);
}

static void note_column(struct copier *copier, const char *name, int parameter)
{
    if (strcmp(name, "id") == 0)
        copier->id = parameter;
    for (int i = 0; i < MOVING; i++)
        if (strcmp(name, moving[i]) == 0)
            copier->moving[copier->moving_count++] = parameter;
}

/* Prepares the statement; the model's values stay bound to it. */
static void make_copier(struct bare *bare, struct copier *copier, const char *table)
{
    char sql[512];
    snprintf(sql, sizeof(sql), "SELECT * FROM %s WHERE id = ?", table);
    sqlite3_stmt *model = prepare(bare, sql);
    sqlite3_bind_text(model, 1, bare->id, -1, SQLITE_STATIC);
    if (sqlite3_step(model) != SQLITE_ROW)
        fatal("--database: the newest run has no row in %s: trigger some first", table);
    int columns = sqlite3_column_count(model);
    if (columns > COLUMNS_MAX)
        fatal("--database: %s has %d columns", table, columns);
    size_t len = (size_t)snprintf(sql, sizeof(sql), "INSERT INTO %s VALUES (?", table);
    for (int i = 1; i < columns; i++)
        len += (size_t)snprintf(sql + len, sizeof(sql) - len, ",?");
    snprintf(sql + len, sizeof(sql) - len, ")");
    copier->insert = prepare(bare, sql);
    for (int i = 0; i < columns; i++) {
        check(bare, sqlite3_bind_value(copier->insert, i + 1,
                                       sqlite3_column_value(model, i)) == SQLITE_OK);
        note_column(copier, sqlite3_column_name(model, i), i + 1);
    }
    sqlite3_finalize(model);
}

static void open_database(struct bare *bare, const char *path)
{
    if (!path[0])
        fatal("--database: name the database of a gateway that does not run");
    if (sqlite3_open_v2(path, &bare->db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK ||
        sqlite3_exec(bare->db,
                     "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
                     "PRAGMA locking_mode = EXCLUSIVE; PRAGMA cache_size = -65536;"
                     "BEGIN IMMEDIATE; ROLLBACK",
                     NULL, NULL, NULL) != SQLITE_OK)
        fatal("--database: %s: name the file runcast.db of a gateway that does not run",
              sqlite3_errmsg(bare->db));
    sqlite3_stmt *newest =
        prepare(bare, "SELECT id, env, task, (SELECT max(rev) FROM run) FROM run"
                      " ORDER BY id DESC LIMIT 1");
    if (sqlite3_step(newest) != SQLITE_ROW ||
        sqlite3_column_bytes(newest, 0) < COUNTER_CHARS)
        fatal("--database: there is no run: trigger some first");
    snprintf(bare->id, sizeof(bare->id), "%s",
             (const char *)sqlite3_column_text(newest, 0));
    bare->highest = sqlite3_column_int64(newest, 3);
    bare->begin = prepare(bare, "BEGIN IMMEDIATE");
    bare->commit = prepare(bare, "COMMIT");
    bare->counters = prepare(bare, "UPDATE environment SET seq = seq + ?1 WHERE env = ?2");
    bare->number = prepare(
        bare, "UPDATE task_number SET last = last + ?1 WHERE env = ?2 AND task = ?3");
    sqlite3_bind_value(bare->counters, 2, sqlite3_column_value(newest, 1));
    sqlite3_bind_value(bare->number, 2, sqlite3_column_value(newest, 1));
    sqlite3_bind_value(bare->number, 3, sqlite3_column_value(newest, 2));
    bare->change = prepare(bare, "UPDATE run SET rev = ?1, metadata_rev = ?1,"
                                 " version = version + 1, updated_at = updated_at + 1"
                                 " WHERE env = ?2 AND id = ?3");
    bare->metadata = prepare(bare, "UPDATE run_metadata SET body = CAST(?1 AS BLOB)"
                                   " WHERE env = ?2 AND id = ?3");
    sqlite3_bind_value(bare->change, 2, sqlite3_column_value(newest, 1));
    sqlite3_bind_value(bare->change, 3, sqlite3_column_value(newest, 0));
    sqlite3_bind_value(bare->metadata, 2, sqlite3_column_value(newest, 1));
    sqlite3_bind_value(bare->metadata, 3, sqlite3_column_value(newest, 0));
    sqlite3_finalize(newest);
}

static void copy(struct bare *bare, struct copier *copier)
{
    sqlite3_bind_text(copier->insert, copier->id, bare->id, -1, SQLITE_STATIC);
    for (int i = 0; i < copier->moving_count; i++)
        sqlite3_bind_int64(copier->insert, copier->moving[i],
                           bare->highest + bare->written);
    run_once(bare, copier->insert);
}

static void write_group(struct bare *bare, int64_t size)
{
    char *counter = bare->id + strlen(bare->id) - COUNTER_CHARS;
    run_once(bare, bare->begin);
    for (int64_t i = 0; i < size; i++) {
        bare->written++;
        /* Sorts after every current id, as those have only digits and lower-case letters,
         * and after earlier copies. */
        snprintf(counter, COUNTER_CHARS + 1, "~%07llx",
                 (unsigned long long)(bare->highest + bare->written) & 0xfffffff);
        copy(bare, &bare->run);
        copy(bare, &bare->payload);
    }
    sqlite3_bind_int64(bare->counters, 1, size);
    sqlite3_bind_int64(bare->number, 1, size);
    run_once(bare, bare->counters);
    run_once(bare, bare->number);
    run_once(bare, bare->commit);
}

static void write_change(struct bare *bare)
{
    bare->written++;
    sqlite3_bind_int64(bare->change, 1, bare->highest + bare->written);
    sqlite3_bind_int64(bare->metadata, 1, now_ns());
    sqlite3_bind_int64(bare->counters, 1, 1);
    run_once(bare, bare->begin);
    run_once(bare, bare->change);
    run_once(bare, bare->metadata);
    if (sqlite3_changes(bare->db) == 0)
        fatal(
            "--rate: the newest run has no metadata that could change: run fanout before");
    run_once(bare, bare->counters);
    run_once(bare, bare->commit);
}

static void sleep_until(int64_t instant_ns)
{
    struct timespec instant = { instant_ns / 1000000000, instant_ns % 1000000000 };
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &instant, NULL);
}

static double cpu_us(void)
{
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (double)used.tv_sec * 1e6 + (double)used.tv_nsec / 1e3;
}

static void close_database(struct bare *bare)
{
    sqlite3_stmt *const all[] = { bare->run.insert, bare->payload.insert, bare->begin,
                                  bare->commit,     bare->counters,       bare->number,
                                  bare->change,     bare->metadata };
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        sqlite3_finalize(all[i]);
    sqlite3_close(bare->db);
}

static void copy_runs(struct bare *bare, const struct options *options)
{
    int64_t group = options->group ? options->group : RUNS_OF_A_TRANSACTION;
    make_copier(bare, &bare->run, "run");
    make_copier(bare, &bare->payload, "run_payload");
    int64_t began = now_ns(), before = began;
    do {
        write_group(bare, group);
        int64_t now = now_ns();
        histogram_record(&bare->latency, now - before);
        before = now;
    } while ((double)(before - began) < options->seconds * 1e9);
    report_count(&bare->report, "group", "runs of a transaction", group);
    report_count(&bare->report, "runs", "runs written", bare->written);
    report_number(&bare->report, "per_second", "runs a second",
                  (double)bare->written / ((double)(before - began) / 1e9), "/s");
}

static void change_run(struct bare *bare, const struct options *options)
{
    int64_t began = now_ns(), instant = began;
    double cpu_before = cpu_us();
    do {
        int64_t before = now_ns();
        write_change(bare);
        histogram_record(&bare->latency, now_ns() - before);
        instant += (int64_t)(1e9 / options->rate);
        sleep_until(instant);
    } while ((double)(instant - began) < options->seconds * 1e9);
    report_count(&bare->report, "changes", "changes written", bare->written);
    report_number(&bare->report, "per_second", "changes a second",
                  (double)bare->written / ((double)(now_ns() - began) / 1e9), "/s");
    report_number(&bare->report, "cpu_us_per_change", "CPU a change",
                  (cpu_us() - cpu_before) / (double)bare->written, "us");
}

int bare_main(const struct options *options)
{
    struct bare *bare = mem_new(struct bare);
    if (options->group < 0 || options->group > 100000)
        fatal("--group is from 1 to 100000, or 0: %d", RUNS_OF_A_TRANSACTION);
    if (options->rate > 0 && options->group)
        fatal("--rate makes one change a transaction: it goes without --group");
    if (options->rate > 0 && options->rate < 0.01)
        fatal("--rate is at least 0.01");
    report_init(&bare->report, options->json, "bare");
    open_database(bare, options->database);
    if (options->rate > 0)
        change_run(bare, options);
    else
        copy_runs(bare, options);
    report_latency(&bare->report, "latency", "a transaction", &bare->latency);
    report_number(&bare->report, "latency_mean_us", "a transaction, mean",
                  histogram_mean(&bare->latency) / 1000, "us");
    report_finish(&bare->report);
    close_database(bare);
    free(bare);
    return 0;
}
