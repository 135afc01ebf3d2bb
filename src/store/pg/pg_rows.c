/* pg_rows.c - rows come in binary; which type a column has says the table of run_columns.h. */
#include "store/pg/pg_rows.h"

#include <string.h>

#include "base/mem.h"
#include "store/pg/pg_bind.h"
#include "store/run_columns.h"

void pg_rows_add_columns(struct buf *sql, enum store_parts parts)
{
    buf_add_text(sql, "r.id, r.tags");
    for (int i = 0; i < RUN_COLUMN_COUNT; i++)
        buf_print(sql, ", r.%s", run_columns[i].name);
    if (parts != STORE_FACTS_ALONE)
        buf_add_text(sql, ", m.body, m.seed");
    if (parts == STORE_PACKETS)
        buf_add_text(sql, ", p.body, p.type, o.body, o.type, o.error");
}

void pg_rows_add_joins(struct buf *sql, enum store_parts parts)
{
    if (parts != STORE_FACTS_ALONE)
        buf_add_text(sql, " LEFT JOIN run_metadata m ON m.env = r.env AND m.id = r.id");
    if (parts == STORE_PACKETS)
        buf_add_text(sql, " LEFT JOIN run_payload p ON p.env = r.env AND p.id = r.id"
                          " LEFT JOIN run_output o ON o.env = r.env AND o.id = r.id");
}

struct slice pg_rows_bytes(const PGresult *answer, int row, int column)
{
    if (PQgetisnull(answer, row, column))
        return (struct slice){ 0 };
    return (struct slice){ PQgetvalue(answer, row, column),
                           (size_t)PQgetlength(answer, row, column) };
}

int64_t pg_rows_number(const PGresult *answer, int row, int column)
{
    struct slice value = pg_rows_bytes(answer, row, column);
    uint64_t number = 0;
    for (size_t i = 0; i < value.len; i++)
        number = number << 8 | (unsigned char)value.ptr[i];
    if (value.len == 2)
        return (int16_t)number;
    return value.len == 4 ? (int32_t)number : (int64_t)number;
}

static struct bytes *copy(const PGresult *answer, int row, int column)
{
    return bytes_create(pg_rows_bytes(answer, row, column));
}

static bool is_set(const PGresult *answer, int row, int at, enum column_type type)
{
    return type == COLUMN_TEXT ? !PQgetisnull(answer, row, at)
                               : pg_rows_number(answer, row, at) != 0;
}

static void read_column(const PGresult *answer, int row, int at,
                        const struct run_column *column, struct run *run)
{
    void *field = run_column_place(column, run, is_set(answer, row, at, column->type));
    int64_t number = pg_rows_number(answer, row, at);
    if (!field)
        return;
    switch (column->type) {
    case COLUMN_U8: *(uint8_t *)field = (uint8_t)number; break;
    case COLUMN_U16: *(uint16_t *)field = (uint16_t)number; break;
    case COLUMN_U32: *(uint32_t *)field = (uint32_t)number; break;
    case COLUMN_I32: *(int32_t *)field = (int32_t)number; break;
    case COLUMN_I64: *(int64_t *)field = number; break;
    case COLUMN_U64: *(uint64_t *)field = (uint64_t)number; break;
    case COLUMN_REAL: memcpy(field, &number, sizeof(double)); break;
    case COLUMN_TEXT: *(struct bytes **)field = copy(answer, row, at); break;
    case COLUMN_FLAGS: run_set_flags(run, (int)number); break;
    }
}

static void read_packets(const PGresult *answer, int row, int at, struct run *run)
{
    run->payload = run_packet_create(pg_rows_bytes(answer, row, at));
    struct bytes *payload_type = copy(answer, row, at + 1);
    run->output = run_packet_create(pg_rows_bytes(answer, row, at + 2));
    struct bytes *output_type = copy(answer, row, at + 3);
    if (payload_type || output_type) {
        run_rare_edit(run)->payload_type = payload_type;
        run_rare_edit(run)->output_type = output_type;
    }
    run->error = copy(answer, row, at + 4);
}

void pg_rows_read_run(const PGresult *answer, int row, int at, enum store_parts parts,
                      struct run *run)
{
    *run = (struct run){ 0 };
    struct slice id = pg_rows_bytes(answer, row, at++);
    memcpy(run->id, id.ptr, id.len < sizeof(run->id) ? id.len : sizeof(run->id) - 1);
    run->tags = run_tags_read(pg_rows_bytes(answer, row, at++));
    for (int i = 0; i < RUN_COLUMN_COUNT; i++)
        read_column(answer, row, at++, &run_columns[i], run);
    if (parts == STORE_FACTS_ALONE)
        return;
    run->metadata = run_packet_create(pg_rows_bytes(answer, row, at++));
    run->metadata_seed = copy(answer, row, at++);
    if (parts == STORE_PACKETS)
        read_packets(answer, row, at, run);
}

struct document pg_rows_read_document(const PGresult *answer, int row,
                                      enum document_kind kind)
{
    return (struct document){
        .kind = kind,
        .env = (uint32_t)pg_rows_number(answer, row, 0),
        .version = (uint32_t)pg_rows_number(answer, row, 1),
        .name = copy(answer, row, 2),
        .body = copy(answer, row, 3),
    };
}
