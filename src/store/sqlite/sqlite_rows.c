/* sqlite_rows.c - runs as rows.
 *
 * A row starts with env, id and tags (a select leaves env out, it is asked for); then come
 * the columns of the table below, in its order; a select adds the packets from their own
 * tables. What never changes after the insert is left out of updates, so that SQLite
 * leaves its indexes alone. */
#include "store/sqlite/sqlite_rows.h"

#include "base/escape.h"
#include "base/mem.h"
#include "base/rope.h"
#include "base/text.h"
#include "json/scan.h"

enum type { U8, U16, U32, I32, I64, U64, REAL, TEXT, FLAGS };
enum life { CHANGES, FIXED };

static const struct stored_column {
    const char *name;
    enum type type;
    enum life life;
    size_t offset; /* as run_field takes it */
} columns[] = {
    { "number", U32, FIXED, offsetof(struct run, number) },
    { "version", U32, CHANGES, offsetof(struct run, version) },
    { "snapshot", U32, CHANGES, offsetof(struct run, snapshot) },
    { "rev", U64, CHANGES, offsetof(struct run, rev) },
    { "whole_rev", U64, CHANGES, offsetof(struct run, whole_rev) },
    { "metadata_rev", U64, CHANGES, offsetof(struct run, metadata_rev) },
    { "output_rev", U64, CHANGES, offsetof(struct run, output_rev) },
    { "status", U8, CHANGES, offsetof(struct run, status) },
    { "execution", U8, CHANGES, offsetof(struct run, execution) },
    { "machine", U8, CHANGES, offsetof(struct run, machine) },
    { "flags", FLAGS, CHANGES, 0 },
    { "attempt", U16, CHANGES, offsetof(struct run, attempt) },
    { "depth", U16, FIXED, offsetof(struct run, depth) },
    { "max_attempts", U16, CHANGES, offsetof(struct run, max_attempts) },
    { "dequeue_failures", U16, CHANGES, offsetof(struct run, dequeue_failures) },
    { "batch_index", U32, FIXED, offsetof(struct run, batch_index) },
    { "priority_ms", I32, CHANGES, rare_offset(priority_ms) },
    { "max_duration_s", U32, CHANGES, offsetof(struct run, max_duration_s) },
    { "usage_ms", U32, CHANGES, offsetof(struct run, usage_ms) },
    { "created_at", I64, FIXED, offsetof(struct run, created_at) },
    { "updated_at", I64, CHANGES, offsetof(struct run, updated_at) },
    { "queued_at", I64, CHANGES, offsetof(struct run, queued_at) },
    { "started_at", I64, CHANGES, offsetof(struct run, started_at) },
    { "attempt_at", I64, CHANGES, offsetof(struct run, attempt_at) },
    { "finished_at", I64, CHANGES, offsetof(struct run, finished_at) },
    { "delayed_until", I64, CHANGES, rare_offset(delayed_until) },
    { "expired_at", I64, CHANGES, rare_offset(expired_at) },
    { "queue_position", I64, CHANGES, offsetof(struct run, queue_position) },
    { "due_at", I64, CHANGES, offsetof(struct run, due_at) },
    { "cost_cents", REAL, CHANGES, offsetof(struct run, cost_cents) },
    { "base_cost_cents", REAL, CHANGES, offsetof(struct run, base_cost_cents) },
    { "task", TEXT, FIXED, offsetof(struct run, task) },
    { "queue", TEXT, CHANGES, offsetof(struct run, queue) },
    { "concurrency_key", TEXT, CHANGES, rare_offset(concurrency_key) },
    { "worker_version", TEXT, CHANGES, offsetof(struct run, worker_version) },
    { "ttl", TEXT, CHANGES, rare_offset(ttl) },
    { "region", TEXT, CHANGES, rare_offset(region) },
    { "batch", TEXT, FIXED, offsetof(struct run, batch) },
    { "parent", TEXT, FIXED, rare_offset(parent) },
    { "root", TEXT, FIXED, rare_offset(root) },
    { "schedule", TEXT, FIXED, rare_offset(schedule) },
    { "idempotency_key", TEXT, CHANGES, rare_offset(idempotency_key) },
    { "idempotency_shown", TEXT, CHANGES, rare_offset(idempotency_shown) },
    { "worker_request", TEXT, CHANGES, offsetof(struct run, worker_request) },
    { "waits", TEXT, CHANGES, rare_offset(waits) },
    { "streams", TEXT, CHANGES, rare_offset(streams) },
    { "metadata_request", TEXT, CHANGES, rare_offset(metadata_request) },
    { "bulk", TEXT, CHANGES, rare_offset(bulk) },
    { "external_deployment", TEXT, FIXED, rare_offset(external_deployment) },
};

enum {
    COLUMN_COUNT = sizeof(columns) / sizeof(columns[0]),
    KEY_COLUMNS = 3, /* env, id, tags */
};

/* ---- SQL ---- */

void sqlite_rows_add_insert(struct buf *sql)
{
    buf_add_text(sql, "INSERT INTO run (env, id, tags");
    for (int i = 0; i < COLUMN_COUNT; i++)
        buf_print(sql, ", %s", columns[i].name);
    buf_add_text(sql, ") VALUES (?1, ?2, ?3");
    for (int i = 0; i < COLUMN_COUNT; i++)
        buf_print(sql, ", ?%d", KEY_COLUMNS + 1 + i);
    buf_add_text(sql, ") ON CONFLICT (env, id) DO NOTHING");
}

void sqlite_rows_add_update(struct buf *sql)
{
    const char *before = "UPDATE run SET";
    for (int i = 0; i < COLUMN_COUNT; i++) {
        if (columns[i].life == FIXED)
            continue;
        buf_print(sql, "%s %s = ?%d", before, columns[i].name, KEY_COLUMNS + 1 + i);
        before = ",";
    }
    buf_add_text(sql, " WHERE env = ?1 AND id = ?2 AND version = ?3");
}

void sqlite_rows_add_select(struct buf *sql, enum store_parts parts)
{
    buf_add_text(sql, "SELECT r.id, r.tags");
    for (int i = 0; i < COLUMN_COUNT; i++)
        buf_print(sql, ", r.%s", columns[i].name);
    if (parts != STORE_FACTS_ALONE)
        buf_add_text(sql, ", m.body, m.seed");
    if (parts == STORE_PACKETS)
        buf_add_text(sql, ", p.body, p.type, o.body, o.type, o.error");
    buf_add_text(sql, " FROM run r");
    if (parts != STORE_FACTS_ALONE)
        buf_add_text(sql, " LEFT JOIN run_metadata m ON m.env = r.env AND m.id = r.id");
    if (parts == STORE_PACKETS)
        buf_add_text(sql, " LEFT JOIN run_payload p ON p.env = r.env AND p.id = r.id"
                          " LEFT JOIN run_output o ON o.env = r.env AND o.id = r.id");
    buf_add_text(sql, " WHERE r.env = ?1 AND r.id = ?2");
}

static bool is_asked(const struct stored_column *column, enum sqlite_texts which)
{
    return column->type == TEXT && (which == SQLITE_TEXTS_ALL || column->life == CHANGES);
}

/* Adds the size of a row. Of a text length() counts characters, and of one with a NUL
 * those before it. */
void sqlite_rows_add_size(struct buf *sql)
{
    const char *before = "length(CAST(";
    for (int i = 0; i < COLUMN_COUNT; i++) {
        if (!is_asked(&columns[i], SQLITE_TEXTS_ALL))
            continue;
        buf_print(sql, "%sifnull(%s, '')", before, columns[i].name);
        before = " || ";
    }
    buf_add_text(sql, " AS BLOB))");
}

void sqlite_rows_add_changing(struct buf *sql)
{
    const char *before = "";
    for (int i = 0; i < COLUMN_COUNT; i++) {
        if (!is_asked(&columns[i], SQLITE_TEXTS_CHANGING))
            continue;
        buf_print(sql, "%s%s", before, columns[i].name);
        before = ", ";
    }
}

int64_t sqlite_rows_size(const struct run *run, enum sqlite_texts which)
{
    size_t sum = 0;
    for (int i = 0; i < COLUMN_COUNT; i++)
        if (is_asked(&columns[i], which))
            sum +=
                bytes_slice(*(struct bytes *const *)run_field(run, columns[i].offset)).len;
    return (int64_t)sum;
}

/* ---- values ---- */

void sqlite_bind_text(sqlite3_stmt *stmt, int parameter, struct slice text)
{
    sqlite3_bind_text64(stmt, parameter, text.ptr, text.len, SQLITE_STATIC, SQLITE_UTF8);
}

void sqlite_bind_blob(sqlite3_stmt *stmt, int parameter, const struct bytes *bytes)
{
    if (bytes)
        sqlite3_bind_blob64(stmt, parameter, bytes->data, bytes->len, SQLITE_STATIC);
    else
        sqlite3_bind_null(stmt, parameter);
}

/* SQLite gives NULL for a blob of no bytes: it is empty, not absent. */
struct slice sqlite_column(sqlite3_stmt *stmt, int column)
{
    if (sqlite3_column_type(stmt, column) == SQLITE_NULL)
        return (struct slice){ 0 };
    const char *ptr = sqlite3_column_blob(stmt, column);
    return (struct slice){ ptr ? ptr : "", (size_t)sqlite3_column_bytes(stmt, column) };
}

struct bytes *sqlite_column_copy(sqlite3_stmt *stmt, int column)
{
    return bytes_create(sqlite_column(stmt, column));
}

/* Who shows a long value has to know whether it is JSON, and how long it is when it is
 * escaped. Both take a look at all of it: here that costs the loop nothing. */
static struct bytes *read_value(sqlite3_stmt *stmt, int column)
{
    struct bytes *value = sqlite_column_copy(stmt, column);
    if (value && value->len >= ROPE_LONG) {
        scan_bytes_are_json(value);
        escape_len_within(value, bytes_slice(value));
    }
    return value;
}

static int flags_of(const struct run *run)
{
    return run->is_test << 0 | run->is_replay << 1 | run->resume_parent << 2 |
           run->from_batch << 3 | run->key_from_user << 4;
}

static void set_flags(struct run *run, int flags)
{
    run->is_test = flags >> 0 & 1;
    run->is_replay = flags >> 1 & 1;
    run->resume_parent = flags >> 2 & 1;
    run->from_batch = flags >> 3 & 1;
    run->key_from_user = flags >> 4 & 1;
}

static void bind_column(sqlite3_stmt *stmt, int parameter,
                        const struct stored_column *column, const struct run *run)
{
    const void *field = run_field(run, column->offset);
    switch (column->type) {
    case U8: sqlite3_bind_int(stmt, parameter, *(const uint8_t *)field); break;
    case U16: sqlite3_bind_int(stmt, parameter, *(const uint16_t *)field); break;
    case U32: sqlite3_bind_int64(stmt, parameter, *(const uint32_t *)field); break;
    case I32: sqlite3_bind_int(stmt, parameter, *(const int32_t *)field); break;
    case I64: sqlite3_bind_int64(stmt, parameter, *(const int64_t *)field); break;
    case U64:
        sqlite3_bind_int64(stmt, parameter, (int64_t) * (const uint64_t *)field);
        break;
    case REAL: sqlite3_bind_double(stmt, parameter, *(const double *)field); break;
    case TEXT:
        sqlite_bind_text(stmt, parameter, bytes_slice(*(struct bytes *const *)field));
        break;
    case FLAGS: sqlite3_bind_int(stmt, parameter, flags_of(run)); break;
    }
}

static bool is_set(sqlite3_stmt *stmt, int at, enum type type)
{
    return type == TEXT ? sqlite3_column_type(stmt, at) != SQLITE_NULL
                        : sqlite3_column_double(stmt, at) != 0;
}

/* A run has no rare part for what is not set. */
static void *field_to_read(sqlite3_stmt *stmt, int at, const struct stored_column *column,
                           struct run *run)
{
    if (column->offset < sizeof(struct run))
        return (char *)run + column->offset;
    if (!is_set(stmt, at, column->type))
        return NULL;
    return (char *)run_rare_edit(run) + (column->offset - sizeof(struct run));
}

static void read_column(sqlite3_stmt *stmt, int at, const struct stored_column *column,
                        struct run *run)
{
    void *field = field_to_read(stmt, at, column, run);
    if (!field)
        return;
    switch (column->type) {
    case U8: *(uint8_t *)field = (uint8_t)sqlite3_column_int(stmt, at); break;
    case U16: *(uint16_t *)field = (uint16_t)sqlite3_column_int(stmt, at); break;
    case U32: *(uint32_t *)field = (uint32_t)sqlite3_column_int64(stmt, at); break;
    case I32: *(int32_t *)field = sqlite3_column_int(stmt, at); break;
    case I64: *(int64_t *)field = sqlite3_column_int64(stmt, at); break;
    case U64: *(uint64_t *)field = (uint64_t)sqlite3_column_int64(stmt, at); break;
    case REAL: *(double *)field = sqlite3_column_double(stmt, at); break;
    case TEXT: *(struct bytes **)field = sqlite_column_copy(stmt, at); break;
    case FLAGS: set_flags(run, sqlite3_column_int(stmt, at)); break;
    }
}

/* ---- rows ---- */

static void bind_key(sqlite3_stmt *stmt, const struct change *change)
{
    sqlite3_bind_int64(stmt, 1, change->env);
    sqlite_bind_text(stmt, 2, slice_of(change->run.id));
}

void sqlite_rows_bind_insert(sqlite3_stmt *stmt, const struct change *change,
                             struct slice tags)
{
    bind_key(stmt, change);
    sqlite_bind_text(stmt, 3, tags);
    for (int i = 0; i < COLUMN_COUNT; i++)
        bind_column(stmt, KEY_COLUMNS + 1 + i, &columns[i], &change->run);
}

void sqlite_rows_bind_update(sqlite3_stmt *stmt, const struct change *change)
{
    bind_key(stmt, change);
    sqlite3_bind_int64(stmt, 3, change->expected);
    for (int i = 0; i < COLUMN_COUNT; i++) {
        if (columns[i].life == CHANGES)
            bind_column(stmt, KEY_COLUMNS + 1 + i, &columns[i], &change->run);
    }
}

static struct tag_list *read_tags(struct slice text)
{
    struct slice names[RUN_TAGS_MAX * 2];
    size_t count = 0;
    while (count < RUN_TAGS_MAX * 2 && sqlite_rows_next_tag(&text, &names[count]))
        count++;
    return tag_list_create(names, count);
}

void sqlite_rows_read(sqlite3_stmt *stmt, struct run *run, enum store_parts parts)
{
    *run = (struct run){ 0 };
    struct slice id = sqlite_column(stmt, 0);
    memcpy(run->id, id.ptr, id.len < sizeof(run->id) ? id.len : sizeof(run->id) - 1);
    run->tags = read_tags(sqlite_column(stmt, 1));

    int at = 2;
    for (int i = 0; i < COLUMN_COUNT; i++)
        read_column(stmt, at++, &columns[i], run);
    if (parts == STORE_FACTS_ALONE)
        return;
    run->metadata = read_value(stmt, at++);
    run->metadata_seed = sqlite_column_copy(stmt, at++);
    if (parts == STORE_METADATA)
        return;
    run->payload = read_value(stmt, at++);
    struct bytes *payload_type = sqlite_column_copy(stmt, at++);
    run->output = read_value(stmt, at++);
    struct bytes *output_type = sqlite_column_copy(stmt, at++);
    if (payload_type || output_type) {
        run_rare_edit(run)->payload_type = payload_type;
        run_rare_edit(run)->output_type = output_type;
    }
    run->error = sqlite_column_copy(stmt, at++);
}

/* ---- tags ---- */

void sqlite_rows_add_tags(struct buf *out, const struct tag_list *tags)
{
    for (uint32_t i = 0; tags && i < tags->count; i++) {
        buf_print(out, "%u:", tags->names[i]->len);
        buf_add(out, bytes_slice(tags->names[i]));
        buf_add_char(out, ',');
    }
}

bool sqlite_rows_next_tag(struct slice *text, struct slice *tag)
{
    struct slice length;
    uint64_t len;
    if (!text->len || !slice_split(text, ':', &length) || text_to_u64(length, &len) ||
        len >= text->len)
        return false;
    *tag = (struct slice){ text->ptr, (size_t)len };
    *text = slice_from(*text, (size_t)len + 1);
    return true;
}
