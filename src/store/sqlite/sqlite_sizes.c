/* sqlite_sizes.c - reads the stored bytes of a row before the row is overwritten. */
#include "store/sqlite/sqlite_sizes.h"

#include "store/sqlite/sqlite_rows.h"

int sqlite_add_sizes(struct sqlite_db *db, sqlite3_stmt *stmt, int64_t *bytes,
                     unsigned *rows)
{
    if (!stmt)
        return sqlite3_extended_errcode(db->handle);
    int code;
    while ((code = sqlite3_step(stmt)) == SQLITE_ROW) {
        *bytes += sqlite3_column_int64(stmt, 0);
        *rows += 1;
    }
    sqlite3_reset(stmt);
    return code == SQLITE_DONE ? SQLITE_OK : code;
}

/* Sets *more to now minus the size that the statement finds. */
static int compare(struct sqlite_db *db, sqlite3_stmt *stmt, int64_t now, int64_t *more)
{
    int64_t before = 0;
    unsigned rows = 0; /* unused; at most one */
    int code = sqlite_add_sizes(db, stmt, &before, &rows);
    *more = now - before;
    return code;
}

static sqlite3_stmt *ask_run(struct sqlite_db *db, enum sqlite_statement which,
                             const struct change *change)
{
    sqlite3_stmt *stmt = sqlite_db_stmt(db, which);
    sqlite3_bind_int64(stmt, 1, change->env);
    sqlite_bind_text(stmt, 2, slice_of(change->run.id));
    return stmt;
}

static int64_t sum(const struct bytes *a, const struct bytes *b, const struct bytes *c)
{
    return (int64_t)(bytes_slice(a).len + bytes_slice(b).len + bytes_slice(c).len);
}

int sqlite_grow_packet(struct sqlite_db *db, const struct change *change,
                       enum sqlite_statement which, int64_t *more)
{
    const struct run *run = &change->run;
    const struct run_rare *rare = run_rare(run);
    enum sqlite_statement size = SQL_SIZE_PAYLOAD;
    if (which == SQL_PUT_PAYLOAD) {
        *more = sum(run->payload, rare->payload_type, NULL);
    } else if (which == SQL_PUT_METADATA) {
        size = SQL_SIZE_METADATA;
        *more = sum(run->metadata, run->metadata_seed, NULL);
    } else {
        size = SQL_SIZE_OUTPUT;
        *more = sum(run->output, rare->output_type, run->error);
    }
    if (!change->expected)
        return SQLITE_OK; /* a new run has no packets yet */
    return compare(db, ask_run(db, size, change), *more, more);
}

/* Called for each write of a run's row. Adds up the columns itself: an expression would
 * make SQLite concatenate all texts to measure them. */
int sqlite_grow_run(struct sqlite_db *db, const struct change *change, int64_t *more)
{
    sqlite3_stmt *stmt = ask_run(db, SQL_SIZE_RUN, change);
    if (!stmt)
        return sqlite3_extended_errcode(db->handle);
    int code = sqlite3_step(stmt);
    int64_t before = 0;
    for (int i = 0; code == SQLITE_ROW && i < sqlite3_column_count(stmt); i++)
        before += sqlite3_column_bytes(stmt, i);
    sqlite3_reset(stmt);
    *more = run_columns_size(&change->run, COLUMN_TEXTS_CHANGING) - before;
    return code == SQLITE_ROW || code == SQLITE_DONE ? SQLITE_OK : code;
}

int sqlite_grow_document(struct sqlite_db *db, const struct change *change, int64_t *more)
{
    struct slice name = bytes_slice(change->document.name);
    int64_t now = stored_document_bytes(name.len, bytes_slice(change->document.body).len);
    *more = now;
    if (!change->expected)
        return SQLITE_OK;
    sqlite3_stmt *stmt = sqlite_db_stmt(db, SQL_SIZE_DOCUMENT);
    sqlite3_bind_int(stmt, 1, (int)change->document.kind);
    sqlite3_bind_int64(stmt, 2, change->env);
    sqlite_bind_text(stmt, 3, name);
    int64_t body = 0;
    unsigned rows = 0;
    int code = sqlite_add_sizes(db, stmt, &body, &rows);
    if (!change->document.body)
        now = 0;
    *more = now - stored_document_bytes(name.len, (size_t)body);
    return code;
}
