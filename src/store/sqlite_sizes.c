/* sqlite_sizes.c - what is there is asked for before it is written over. */
#include "store/sqlite_sizes.h"

#include "store/sqlite_rows.h"

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

static int count_old(struct sqlite_db *db, struct change *change, sqlite3_stmt *stmt)
{
    int64_t bytes = 0;
    unsigned rows = 0;
    int code = sqlite_add_sizes(db, stmt, &bytes, &rows);
    change->stored -= bytes;
    return code;
}

static int64_t sizes_of(const struct bytes *one, const struct bytes *other)
{
    return (int64_t)(bytes_slice(one).len + bytes_slice(other).len);
}

int sqlite_count_packet(struct sqlite_db *db, struct change *change,
                        enum sqlite_statement which)
{
    const struct run *run = &change->run;
    enum sqlite_statement size = SQL_SIZE_PAYLOAD;
    if (which == SQL_PUT_PAYLOAD) {
        change->stored += sizes_of(run->payload, NULL);
    } else if (which == SQL_PUT_METADATA) {
        size = SQL_SIZE_METADATA;
        change->stored += sizes_of(run->metadata, run->metadata_seed);
    } else {
        size = SQL_SIZE_OUTPUT;
        change->stored += sizes_of(run->output, run->error);
    }
    if (!change->expected)
        return SQLITE_OK; /* a new run: there is none */
    sqlite3_stmt *stmt = sqlite_db_stmt(db, size);
    sqlite3_bind_int64(stmt, 1, change->env);
    sqlite_bind_text(stmt, 2, slice_of(run->id));
    return count_old(db, change, stmt);
}

int sqlite_count_document(struct sqlite_db *db, struct change *change)
{
    const struct document *document = &change->document;
    if (document->kind != DOC_PACKET)
        return SQLITE_OK;
    change->stored += sizes_of(document->body, NULL);
    sqlite3_stmt *stmt = sqlite_db_stmt(db, SQL_SIZE_DOCUMENT);
    sqlite3_bind_int(stmt, 1, (int)document->kind);
    sqlite3_bind_int64(stmt, 2, change->env);
    sqlite_bind_text(stmt, 3, bytes_slice(document->name));
    return count_old(db, change, stmt);
}
