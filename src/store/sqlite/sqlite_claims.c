/* sqlite_claims.c - takes, releases and sweeps the claims of commits.
 *
 *   claim         a tree by key, and one by expiry: lasting keys
 *   brief_claim   rows in the order of their commits; sqlite_claim_index.h finds a key
 *
 * Keys are random, so each row of the first table changes a page of its own in the log. The
 * rows of the second table are appended to one page and removed from the other end. */
#include <assert.h>
#include <stdio.h>

#include "store/sqlite/sqlite_apply.h"
#include "store/sqlite/sqlite_rows.h"

enum {
    CLAIMS_SWEPT = 64, /* per transaction, plus as many as were taken since then */
    CLAIMS_SWEPT_MAX = 512,
    SWEEP_EVERY_MS = 1000,
};

static sqlite3_stmt *claim_statement(struct sqlite_apply *apply,
                                     enum sqlite_statement which, const struct claim *claim)
{
    sqlite3_stmt *stmt = sqlite_db_stmt(apply->db, which);
    sqlite3_bind_int64(stmt, 1, claim->env);
    sqlite3_bind_int(stmt, 2, (int)claim->kind);
    sqlite_bind_text(stmt, 3, bytes_slice(claim->key));
    return stmt;
}

static enum store_status finish(struct sqlite_apply *apply, sqlite3_stmt *stmt)
{
    return sqlite_apply_outcome(apply, sqlite_db_finish(apply->db, stmt));
}

static bool nothing_changed(struct sqlite_apply *apply)
{
    return sqlite3_changes(apply->db->handle) == 0;
}

static void count_taken(struct sqlite_apply *apply, const struct claim *claim)
{
    sqlite_growths_add(&apply->growths, claim->env,
                       stored_claim_bytes(bytes_slice(claim->key).len));
    apply->taken++;
}

static enum store_status put_claim(struct sqlite_apply *apply, const struct claim *claim,
                                   enum sqlite_statement which, int64_t now_ms)
{
    sqlite3_stmt *stmt = claim_statement(apply, which, claim);
    sqlite_bind_text(stmt, 4, slice_of(claim->owner));
    sqlite3_bind_int64(stmt, 5, claim->expires_at);
    if (which == SQL_TAKE_OVER_CLAIM) {
        sqlite_bind_text(stmt, 6, slice_of(claim->instead_of));
        sqlite3_bind_int64(stmt, 7, now_ms);
    }
    return finish(apply, stmt);
}

/* Reads the owner, and compares it with the claim's own. If another one is found, sets
 * taken and owner and returns STORE_TAKEN. Returns STORE_MISSING without a row. */
static enum store_status read_owner(struct sqlite_apply *apply, struct claim *claim,
                                    sqlite3_stmt *stmt)
{
    int code = stmt ? sqlite3_step(stmt) : sqlite3_extended_errcode(apply->db->handle);
    enum store_status status = STORE_MISSING;
    if (code == SQLITE_ROW) {
        const char *owner = (const char *)sqlite3_column_text(stmt, 0);
        claim->taken = strcmp(owner, claim->owner) != 0;
        status = claim->taken ? STORE_TAKEN : STORE_OK;
        snprintf(claim->owner, sizeof(claim->owner), "%s", owner);
    } else if (code != SQLITE_DONE) {
        status = sqlite_apply_outcome(apply, code);
    }
    sqlite3_reset(stmt);
    return status;
}

/* ---- brief claims ---- */

/* Returns STORE_MISSING if no row has the key, except for rows that have expired. */
static enum store_status find_brief(struct sqlite_apply *apply, struct claim *claim,
                                    uint32_t hash, int64_t now_ms)
{
    enum store_status status = STORE_MISSING;
    size_t at = 0;
    for (int64_t id; status == STORE_MISSING &&
                     (id = claim_index_next(&apply->brief, hash, &at)) != 0;) {
        sqlite3_stmt *stmt = claim_statement(apply, SQL_BRIEF_CLAIM, claim);
        sqlite3_bind_int64(stmt, 4, id);
        sqlite3_bind_int64(stmt, 5, now_ms);
        status = read_owner(apply, claim, stmt);
    }
    return status;
}

static enum store_status take_brief(struct sqlite_apply *apply, struct claim *claim,
                                    int64_t now_ms)
{
    uint32_t hash = claim_index_hash(bytes_slice(claim->key));
    enum store_status status = find_brief(apply, claim, hash, now_ms);
    if (status != STORE_MISSING)
        return status;
    status = put_claim(apply, claim, SQL_TAKE_BRIEF_CLAIM, now_ms);
    if (status)
        return status;
    claim_index_add(&apply->brief, hash, sqlite3_last_insert_rowid(apply->db->handle));
    count_taken(apply, claim);
    return STORE_OK;
}

bool sqlite_apply_load_claims(struct sqlite_apply *apply)
{
    sqlite3_stmt *stmt = sqlite_db_stmt(apply->db, SQL_BRIEF_CLAIMS);
    int code = SQLITE_ERROR;
    claim_index_finish(&apply->brief);
    while (stmt && (code = sqlite3_step(stmt)) == SQLITE_ROW) {
        uint32_t hash = claim_index_hash(sqlite_column(stmt, 1));
        claim_index_add(&apply->brief, hash, sqlite3_column_int64(stmt, 0));
        claim_index_keep(&apply->brief);
    }
    sqlite3_reset(stmt);
    return code == SQLITE_DONE;
}

/* ---- other claims ---- */

static enum store_status release_claim(struct sqlite_apply *apply,
                                       const struct claim *claim)
{
    sqlite3_stmt *stmt = claim_statement(apply, SQL_RELEASE_CLAIM, claim);
    sqlite_bind_text(stmt, 4, slice_of(claim->owner));
    enum store_status status = finish(apply, stmt);
    if (!status && !nothing_changed(apply))
        sqlite_growths_add(&apply->growths, claim->env,
                           -stored_claim_bytes(bytes_slice(claim->key).len));
    return status;
}

static enum store_status take_claim(struct sqlite_apply *apply, struct claim *claim,
                                    int64_t now_ms)
{
    enum store_status status = put_claim(apply, claim, SQL_TAKE_CLAIM, now_ms);
    if (!status && !nothing_changed(apply)) {
        count_taken(apply, claim);
        return status;
    }
    if (!status)
        status = put_claim(apply, claim, SQL_TAKE_OVER_CLAIM, now_ms);
    if (status || !nothing_changed(apply))
        return status;
    return read_owner(apply, claim, claim_statement(apply, SQL_CLAIM_OWNER, claim));
}

enum store_status sqlite_apply_claims(struct sqlite_apply *apply, struct store_commit *req)
{
    enum store_status all = STORE_OK;
    for (size_t i = 0; i < req->claim_count && !apply->trouble; i++) {
        struct claim *claim = &req->claims[i];
        assert(!claim->brief || (claim->expires_at && !claim->release));
        claim->taken = false;
        enum store_status status = claim->brief     ? take_brief(apply, claim, req->now_ms)
                                   : claim->release ? release_claim(apply, claim)
                                                    : take_claim(apply, claim, req->now_ms);
        if (status)
            all = status;
    }
    return all;
}

/* ---- expired claims ---- */

/* Returns true if fewer than `most` were left to remove. If the transaction fails, the index
 * lacks rows that are there again; they have expired. */
static bool sweep(struct sqlite_apply *apply, enum sqlite_statement which, int64_t now_ms,
                  int most)
{
    sqlite3_stmt *stmt = sqlite_db_stmt(apply->db, which);
    sqlite3_bind_int64(stmt, 1, now_ms);
    sqlite3_bind_int(stmt, 2, most);
    int code = stmt ? SQLITE_ROW : sqlite3_extended_errcode(apply->db->handle), swept = 0;
    for (; stmt && (code = sqlite3_step(stmt)) == SQLITE_ROW; swept++) {
        struct slice key = sqlite_column(stmt, 1);
        sqlite_growths_add(&apply->growths, (uint32_t)sqlite3_column_int64(stmt, 0),
                           -stored_claim_bytes(key.len));
        if (which == SQL_SWEEP_BRIEF_CLAIMS)
            claim_index_remove(&apply->brief, claim_index_hash(key),
                               sqlite3_column_int64(stmt, 2));
    }
    sqlite3_reset(stmt);
    sqlite_apply_outcome(apply, code == SQLITE_DONE ? SQLITE_OK : code);
    return swept < most;
}

void sqlite_apply_sweep(struct sqlite_apply *apply, int64_t now_ms)
{
    bool is_set_back = now_ms < apply->swept_at;
    if (!is_set_back && now_ms < apply->swept_at + SWEEP_EVERY_MS)
        return;
    int most = CLAIMS_SWEPT + apply->taken;
    most = most < CLAIMS_SWEPT_MAX ? most : CLAIMS_SWEPT_MAX;
    bool all = sweep(apply, SQL_SWEEP_CLAIMS, now_ms, most);
    all = !apply->trouble && sweep(apply, SQL_SWEEP_BRIEF_CLAIMS, now_ms, most) && all;
    apply->taken = 0;
    if (all)
        apply->swept_at = now_ms;
}
