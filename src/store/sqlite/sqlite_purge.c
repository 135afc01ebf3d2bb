/* sqlite_purge.c - removes final runs and old documents, for retention.
 *
 * If the whole environment is removed (store_purge::whole), so are its claims and run
 * numbers. */
#include <stdio.h>

#include "base/mem.h"
#include "store/sqlite/sqlite_apply.h"
#include "store/sqlite/sqlite_rows.h"
#include "store/sqlite/sqlite_sizes.h"

struct picked {
    char id[ID_MAX];
    struct bytes *tags;
};

/* Finds the runs to remove, and sets *floor to the time of the first one that stays. */
static enum store_status pick_runs(struct sqlite_apply *apply, struct store_purge *req,
                                   struct picked *picked, uint64_t *purged, int64_t *floor)
{
    sqlite3_stmt *stmt = sqlite_db_stmt(apply->db, SQL_PURGE_PICK);
    sqlite3_bind_int64(stmt, 1, req->env);
    sqlite3_bind_int64(stmt, 2, req->before);
    sqlite3_bind_int64(stmt, 3, (int64_t)req->limit + 1);
    int code = stmt ? SQLITE_ROW : sqlite3_extended_errcode(apply->db->handle);
    while (stmt && (code = sqlite3_step(stmt)) == SQLITE_ROW) {
        if (req->count == req->limit) {
            *floor = sqlite3_column_int64(stmt, 2);
            continue;
        }
        struct picked *run = &picked[req->count++];
        snprintf(run->id, sizeof(run->id), "%s", sqlite3_column_text(stmt, 0));
        uint64_t rev = (uint64_t)sqlite3_column_int64(stmt, 1);
        *purged = rev > *purged ? rev : *purged;
        run->tags = sqlite_column_copy(stmt, 3);
    }
    sqlite3_reset(stmt);
    return sqlite_apply_outcome(apply, code == SQLITE_DONE ? SQLITE_OK : code);
}

/* Runs a statement that removes rows and returns what each counted in addition to fixed. */
static enum store_status remove_rows(struct sqlite_apply *apply, struct store_purge *req,
                                     sqlite3_stmt *stmt, int64_t fixed, unsigned *removed)
{
    int64_t bytes = 0;
    unsigned rows = 0;
    int code = sqlite_add_sizes(apply->db, stmt, &bytes, &rows);
    sqlite_growths_add(&apply->growths, req->env, -(bytes + rows * fixed));
    *removed = rows;
    return sqlite_apply_outcome(apply, code);
}

static enum store_status remove_run(struct sqlite_apply *apply, struct store_purge *req,
                                    const struct picked *picked)
{
    struct change change = { .env = req->env };
    unsigned removed; /* unused */
    memcpy(change.run.id, picked->id, sizeof(change.run.id));
    enum store_status status =
        sqlite_apply_tags(apply, &change, bytes_slice(picked->tags), SQL_DELETE_TAG);
    for (enum sqlite_statement s = SQL_PURGE_RUN; s <= SQL_PURGE_PIECES && !status; s++) {
        bool is_document = s >= SQL_PURGE_TRACE;
        int64_t fixed = s == SQL_PURGE_RUN ? STORED_RUN : is_document ? STORED_ROW : 0;
        sqlite3_stmt *stmt = sqlite_db_stmt(apply->db, s);
        sqlite3_bind_int64(stmt, 1, req->env);
        sqlite_bind_text(stmt, 2, slice_of(picked->id));
        if (is_document)
            sqlite3_bind_int(stmt, 3, s == SQL_PURGE_TRACE ? DOC_TRACE : DOC_TRACE_PIECE);
        status = remove_rows(apply, req, stmt, fixed, &removed);
    }
    return status;
}

static enum store_status put_purged(struct sqlite_apply *apply, struct store_purge *req,
                                    uint64_t purged, int64_t floor)
{
    sqlite3_stmt *stmt = sqlite_db_stmt(apply->db, SQL_PUT_PURGED);
    sqlite3_bind_int64(stmt, 1, req->env);
    sqlite3_bind_int64(stmt, 2, (int64_t)purged);
    sqlite3_bind_int64(stmt, 3, floor);
    int code = stmt ? sqlite3_step(stmt) : sqlite3_extended_errcode(apply->db->handle);
    if (code == SQLITE_ROW)
        req->position = (struct store_position){
            .env = req->env,
            .seq = (uint64_t)sqlite3_column_int64(stmt, 0),
            .purged = (uint64_t)sqlite3_column_int64(stmt, 1),
            .floor = sqlite3_column_int64(stmt, 2),
        };
    sqlite3_reset(stmt);
    return sqlite_apply_outcome(apply, code == SQLITE_ROW ? SQLITE_OK : code);
}

static enum store_status remove_documents(struct sqlite_apply *apply,
                                          struct store_purge *req, enum document_kind kind,
                                          enum sqlite_statement which)
{
    sqlite3_stmt *stmt = sqlite_db_stmt(apply->db, which);
    sqlite3_bind_int(stmt, 1, (int)kind);
    sqlite3_bind_int64(stmt, 2, req->env);
    sqlite3_bind_int64(stmt, 3, req->documents_before);
    sqlite3_bind_int64(stmt, 4, (int64_t)req->limit);
    unsigned removed;
    enum store_status status = remove_rows(apply, req, stmt, STORED_ROW, &removed);
    if (!status && removed == req->limit)
        req->more_documents = true;
    return status;
}

/* Removes other rows of the environment: claims of one kind, or counters of runs. */
static enum store_status remove_others(struct sqlite_apply *apply, struct store_purge *req,
                                       enum sqlite_statement which)
{
    sqlite3_stmt *stmt = sqlite_db_stmt(apply->db, which);
    sqlite3_bind_int64(stmt, 1, req->env);
    sqlite3_bind_int64(stmt, 2, (int64_t)req->limit);
    unsigned removed;
    enum store_status status = remove_rows(apply, req, stmt, STORED_ROW, &removed);
    if (!status && removed > 0)
        req->more_documents = true;
    return status;
}

void sqlite_apply_purge(struct sqlite_apply *apply, struct store_purge *req)
{
    struct picked *picked = mem_new_array(struct picked, req->limit);
    uint64_t purged = 0;
    int64_t floor = req->before;
    req->count = 0;
    req->status = pick_runs(apply, req, picked, &purged, &floor);
    for (size_t i = 0; i < req->count; i++) {
        if (!req->status)
            req->status = remove_run(apply, req, &picked[i]);
        bytes_unref(picked[i].tags);
    }
    free(picked);
    req->more_documents = false;
    if (!req->status)
        req->status = remove_documents(apply, req, DOC_BATCH, SQL_PURGE_BATCHES);
    if (!req->status)
        req->status = remove_documents(apply, req, DOC_PACKET, SQL_PURGE_PACKETS);
    if (!req->status)
        req->status = remove_documents(apply, req, DOC_WAITPOINT, SQL_PURGE_WAITPOINTS);
    if (!req->status && req->whole)
        req->status = remove_others(apply, req, SQL_PURGE_CLAIMS);
    if (!req->status && req->whole)
        req->status = remove_others(apply, req, SQL_PURGE_NUMBERS);
    if (!req->status)
        req->status = put_purged(apply, req, purged, floor);
}
