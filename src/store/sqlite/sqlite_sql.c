/* sqlite_sql.c - the texts of the prepared statements.
 *
 * sqlite_rows.c makes the statements with every column of a run. */
#include "store/sqlite/sqlite_sql.h"

#include "store/sqlite/sqlite_rows.h"

/* Bytes of a text; length() alone counts characters. */
#define BYTES(text) "length(CAST(" text " AS BLOB))"

/* Removes unneeded old documents of kind ?1 in environment ?2. */
#define PURGE_DOCUMENTS(and_unused)                                                        \
    "DELETE FROM document WHERE kind = ?1 AND env = ?2 AND name IN (SELECT name"           \
    " FROM document AS d WHERE kind = ?1 AND env = ?2 AND written_at < ?3" and_unused      \
    " LIMIT ?4) RETURNING length(body) + 2 * " BYTES("name")

#define OF_RUN(table) " FROM " table " WHERE env = ?1 AND id = ?2"
#define REMOVE(table, bytes)                                                               \
    "DELETE FROM " table " WHERE env = ?1 AND id = ?2 RETURNING " bytes

/* Bytes of a payload that count as stored (sqlite_sizes.h). */
#define PAYLOAD_BYTES "ifnull(length(body), 0) + " BYTES("ifnull(type, '')")
#define METADATA_BYTES "ifnull(length(body), 0) + ifnull(length(seed), 0)"
#define OUTPUT_BYTES PAYLOAD_BYTES " + ifnull(length(error), 0)"

/* The first kind of claims that is left in environment ?1. */
#define FIRST_KIND "(SELECT kind FROM claim WHERE env = ?1 ORDER BY kind LIMIT 1)"

static const char *const texts[SQL_STATEMENT_COUNT] = {
    [SQL_BEGIN] = "BEGIN IMMEDIATE",
    [SQL_BEGIN_READ] = "BEGIN",
    [SQL_COMMIT] = "COMMIT",
    [SQL_ROLLBACK] = "ROLLBACK",
    [SQL_SAVEPOINT] = "SAVEPOINT request",
    [SQL_ROLLBACK_TO] = "ROLLBACK TO request",
    [SQL_RELEASE] = "RELEASE request",

    [SQL_GET_TAGS] = "SELECT tags FROM run WHERE env = ?1 AND id = ?2",
    [SQL_PUT_TAGS] = "UPDATE run SET tags = ?3 WHERE env = ?1 AND id = ?2",
    [SQL_INSERT_TAG] = "INSERT OR IGNORE INTO run_tag (env, id, tag) VALUES (?1, ?2, ?3)",
    [SQL_DELETE_TAG] = "DELETE FROM run_tag WHERE env = ?1 AND id = ?2 AND tag = ?3",
    [SQL_PUT_PAYLOAD] =
        "INSERT INTO run_payload (env, id, body, type) VALUES (?1, ?2, ?3, ?4)"
        " ON CONFLICT DO UPDATE SET body = ?3, type = ?4",
    [SQL_PUT_METADATA] =
        "INSERT INTO run_metadata (env, id, body, seed) VALUES (?1, ?2, ?3, ?4)"
        " ON CONFLICT DO UPDATE SET body = ?3, seed = ?4",
    [SQL_PUT_OUTPUT] =
        "INSERT INTO run_output (env, id, body, type, error) VALUES (?1, ?2, ?3, ?4, ?5)"
        " ON CONFLICT DO UPDATE SET body = ?3, type = ?4, error = ?5",

    [SQL_SIZE_PAYLOAD] = "SELECT " PAYLOAD_BYTES OF_RUN("run_payload"),
    [SQL_SIZE_METADATA] = "SELECT " METADATA_BYTES OF_RUN("run_metadata"),
    [SQL_SIZE_OUTPUT] = "SELECT " OUTPUT_BYTES OF_RUN("run_output"),
    [SQL_SIZE_DOCUMENT] =
        "SELECT length(body) FROM document WHERE kind = ?1 AND env = ?2 AND name = ?3",

    [SQL_INSERT_DOCUMENT] =
        "INSERT INTO document (kind, env, name, version, seq, body, written_at, stale_at)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?8, ?9)"
        " ON CONFLICT (kind, env, name) DO NOTHING",
    [SQL_UPDATE_DOCUMENT] = "UPDATE document SET version = ?4, seq = ?5, body = ?6,"
                            " written_at = ?8, stale_at = ?9 WHERE kind = ?1 AND env = ?2 "
                            "AND name = ?3 AND version = ?7",
    [SQL_DELETE_DOCUMENT] =
        "DELETE FROM document WHERE kind = ?1 AND env = ?2 AND name = ?3 AND version = ?7",
    [SQL_LOAD_DOCUMENT] = "SELECT env, version, name, body FROM document"
                          " WHERE kind = ?1 AND env = ?2 AND name = ?3",
    /* From 1; from the end if ?4 is negative. substr returns NULL for a blob of length
     * 0. */
    [SQL_LOAD_PIECE] =
        "SELECT seq, length(body),"
        " CASE WHEN ?6 IN (0, seq) THEN ifnull(substr(body, ?4, ?5), x'') END"
        " FROM document WHERE kind = ?1 AND env = ?2 AND name = ?3",
    [SQL_HAS_DOCUMENT] =
        "SELECT 1 FROM document WHERE kind = ?1 AND env = ?2 AND name = ?3",
    [SQL_SCAN] = "SELECT env, version, name, body FROM document"
                 " WHERE kind = ?1 ORDER BY env, name",
    [SQL_SCAN_ENV] = "SELECT env, version, name, body FROM document"
                     " WHERE kind = ?1 AND env = ?2 ORDER BY name",
    [SQL_SCAN_CLAIMS] = "SELECT env, 0, key, owner, expires_at FROM claim WHERE kind = ?1"
                        " ORDER BY env, key",
    [SQL_SCAN_CLAIMS_ENV] =
        "SELECT env, 0, key, owner, expires_at FROM claim WHERE kind = ?1 AND env = ?2"
        " ORDER BY key",
    [SQL_SCAN_UP] = "SELECT env, version, name, body FROM document"
                    " WHERE kind = ?1 AND env = ?2 AND name > ?3 ORDER BY name",
    [SQL_SCAN_DOWN] = "SELECT env, version, name, body FROM document"
                      " WHERE kind = ?1 AND env = ?2 AND name < ?3 ORDER BY name DESC",

    [SQL_TAKE_CLAIM] =
        "INSERT INTO claim (env, kind, key, owner, expires_at) VALUES (?1, ?2, ?3, ?4, ?5)"
        " ON CONFLICT (env, kind, key) DO NOTHING",
    /* Changes the owner of a claim that has expired, is ours, or is of the named owner. */
    [SQL_TAKE_OVER_CLAIM] =
        "UPDATE claim SET owner = ?4, expires_at = ?5 WHERE env = ?1 AND kind = ?2"
        " AND key = ?3"
        " AND (owner = ?4 OR owner = ?6 OR (expires_at > 0 AND expires_at <= ?7))",
    [SQL_RELEASE_CLAIM] =
        "DELETE FROM claim WHERE env = ?1 AND kind = ?2 AND key = ?3 AND owner = ?4",
    [SQL_CLAIM_OWNER] = "SELECT owner FROM claim WHERE env = ?1 AND kind = ?2 AND key = ?3",
    /* A range of claim_expiry, up to the last one to remove. With "(env, kind, key) IN" SQLite
     * would scan all claims of the kind. */
    [SQL_SWEEP_CLAIMS] =
        "DELETE FROM claim WHERE expires_at > 0 AND (expires_at, env, kind, key) <="
        " (SELECT expires_at, env, kind, key FROM (SELECT expires_at, env, kind, key"
        " FROM claim WHERE expires_at > 0 AND expires_at <= ?1"
        " ORDER BY expires_at, env, kind, key LIMIT ?2)"
        " ORDER BY expires_at DESC, env DESC, kind DESC, key DESC LIMIT 1)"
        " RETURNING env, key",
    [SQL_BRIEF_CLAIMS] = "SELECT id, key FROM brief_claim ORDER BY id",
    [SQL_BRIEF_CLAIM] = "SELECT owner FROM brief_claim WHERE env = ?1 AND kind = ?2"
                        " AND key = ?3 AND id = ?4 AND expires_at > ?5",
    [SQL_TAKE_BRIEF_CLAIM] = "INSERT INTO brief_claim (env, kind, key, owner, expires_at)"
                             " VALUES (?1, ?2, ?3, ?4, ?5)",
    /* A claim that was taken while the clock was ahead delays those after it. One that expires
     * more than two hours from now would do so for long, so it is removed. */
    [SQL_SWEEP_BRIEF_CLAIMS] =
        "DELETE FROM brief_claim WHERE id < (SELECT min(id) FROM brief_claim) + ?2"
        " AND (expires_at <= ?1 OR expires_at > ?1 + 7200000) RETURNING env, key, id",

    [SQL_POSITIONS] =
        "SELECT env, seq, purged, floor, stored FROM environment ORDER BY env",
    [SQL_GET_SEQ] = "SELECT seq FROM environment WHERE env = ?1",
    [SQL_PUT_SEQ] = "INSERT INTO environment (env, seq) VALUES (?1, ?3)"
                    " ON CONFLICT DO UPDATE SET seq = ?3",
    [SQL_PUT_STORED] = "INSERT INTO environment (env, stored) VALUES (?1, ?2)"
                       " ON CONFLICT DO UPDATE SET stored = stored + ?2",
    [SQL_GET_NUMBER] = "SELECT last FROM task_number WHERE env = ?1 AND task = ?2",
    [SQL_PUT_NUMBER] = "INSERT INTO task_number (env, task, last) VALUES (?1, ?2, ?3)"
                       " ON CONFLICT DO UPDATE SET last = ?3",

    [SQL_PURGE_PICK] =
        "SELECT id, rev, updated_at, tags FROM run INDEXED BY run_final"
        " WHERE env = ?1 AND status >= 7 AND updated_at < ?2 ORDER BY updated_at LIMIT ?3",
    [SQL_PURGE_PAYLOAD] = REMOVE("run_payload", PAYLOAD_BYTES),
    [SQL_PURGE_METADATA] = REMOVE("run_metadata", METADATA_BYTES),
    [SQL_PURGE_OUTPUT] = REMOVE("run_output", OUTPUT_BYTES),
    [SQL_PURGE_TRACE] = "DELETE FROM document WHERE env = ?1 AND name = ?2 AND kind = ?3"
                        " RETURNING length(body) + 2 * " BYTES("name"),
    /* "0" is the character after "/". */
    [SQL_PURGE_PIECES] = "DELETE FROM document WHERE env = ?1 AND name > ?2 || '/'"
                         " AND name < ?2 || '0' AND kind = ?3"
                         " RETURNING length(body) + 2 * " BYTES("name"),
    [SQL_PUT_PURGED] =
        "INSERT INTO environment (env, purged, floor) VALUES (?1, ?2, ?3) ON CONFLICT"
        " DO UPDATE SET purged = max(purged, ?2), floor = max(floor, ?3)"
        " RETURNING seq, purged, floor",
    [SQL_PURGE_BATCHES] = PURGE_DOCUMENTS(
        " AND NOT EXISTS (SELECT 1 FROM run WHERE env = ?2 AND batch = d.name)"),
    [SQL_PURGE_PACKETS] = PURGE_DOCUMENTS(
        " AND NOT EXISTS (SELECT 1 FROM run_payload INDEXED BY payload_packet WHERE env = "
        "?2"
        " AND body = CAST(d.name AS BLOB) AND type = 'application/store')"
        " AND NOT EXISTS (SELECT 1 FROM run_output INDEXED BY output_packet WHERE env = ?2"
        " AND body = CAST(d.name AS BLOB) AND type = 'application/store')"),
    [SQL_PURGE_WAITPOINTS] = PURGE_DOCUMENTS(
        " AND stale_at > 0 AND stale_at < ?3 AND name NOT IN"
        " (SELECT ifnull(json_extract(w.value, '$.id'), '') FROM run INDEXED BY run_token,"
        " json_each(CASE WHEN json_valid(waits) THEN waits ELSE '[]' END) AS w"
        " WHERE env = ?2 AND status < 7 AND instr(waits, '\"MANUAL\"') > 0)"),
    /* Those of one kind. With "(kind, key) IN" SQLite would scan all claims. */
    [SQL_PURGE_CLAIMS] =
        "DELETE FROM claim WHERE env = ?1 AND kind = " FIRST_KIND
        " AND key IN (SELECT key FROM claim WHERE env = ?1 AND kind = " FIRST_KIND
        " LIMIT ?2) RETURNING 2 * " BYTES("key"),
    [SQL_PURGE_NUMBERS] =
        "DELETE FROM task_number WHERE env = ?1 AND task IN"
        " (SELECT task FROM task_number WHERE env = ?1 LIMIT ?2) RETURNING " BYTES("task"),

    [SQL_SEQ] = "SELECT seq FROM environment WHERE env = ?1",
    [SQL_EPOCH] = "SELECT value FROM meta WHERE name = 'epoch'",
    [SQL_RENEW_EPOCH] =
        "UPDATE meta SET value = lower(hex(randomblob(8))) WHERE name = 'epoch'"
        " RETURNING value",
    [SQL_PROBE] = "UPDATE meta SET value = value + 1 WHERE name = 'reopened'",
};

static void add_texts_of_run(struct buf *sql)
{
    buf_add_text(sql, "SELECT ");
    sqlite_rows_add_changing(sql);
    buf_add_text(sql, OF_RUN("run"));
}

static void add_purge_run(struct buf *sql)
{
    buf_add_text(sql, REMOVE("run", "2 * " BYTES("ifnull(tags, '')") " + "));
    sqlite_rows_add_size(sql);
}

void sqlite_sql_add(struct buf *sql, enum sqlite_statement which)
{
    switch (which) {
    case SQL_SIZE_RUN: add_texts_of_run(sql); return;
    case SQL_PURGE_RUN: add_purge_run(sql); return;
    case SQL_INSERT_RUN: sqlite_rows_add_insert(sql); return;
    case SQL_UPDATE_RUN: sqlite_rows_add_update(sql); return;
    case SQL_LOAD_RUN: sqlite_rows_add_select(sql, STORE_PACKETS); return;
    case SQL_LOAD_METADATA: sqlite_rows_add_select(sql, STORE_METADATA); return;
    case SQL_LOAD_FACTS: sqlite_rows_add_select(sql, STORE_FACTS_ALONE); return;
    default: buf_add_text(sql, texts[which]);
    }
}
