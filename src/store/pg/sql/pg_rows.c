/* pg_rows.c - decodes binary rows; run_columns.h has the types of the columns. */
#include "store/pg/sql/pg_rows.h"

#include <string.h>

#include "base/mem.h"
#include "store/pg/sql/pg_bind.h"
#include "store/run_sql.h"

/* Adds a single column, because each separate value costs libpq more time than the
 * server. */
void pg_rows_add_run(struct buf *sql, enum store_parts parts)
{
    buf_add_text(sql, "ROW(");
    run_columns_add(sql, parts);
    buf_add_text(sql, ")");
}

struct slice pg_rows_bytes(const PGresult *answer, int row, int column)
{
    if (PQgetisnull(answer, row, column))
        return (struct slice){ 0 };
    return (struct slice){ PQgetvalue(answer, row, column),
                           (size_t)PQgetlength(answer, row, column) };
}

static int64_t number_of(struct slice value)
{
    uint64_t number = 0;
    for (size_t i = 0; i < value.len; i++)
        number = number << 8 | (unsigned char)value.ptr[i];
    if (value.len == 2)
        return (int16_t)number;
    return value.len == 4 ? (int32_t)number : (int64_t)number;
}

int64_t pg_rows_number(const PGresult *answer, int row, int column)
{
    return number_of(pg_rows_bytes(answer, row, column));
}

static struct bytes *copy(const PGresult *answer, int row, int column)
{
    return bytes_create(pg_rows_bytes(answer, row, column));
}

/* ---- runs ---- */

/* A composite value, or a row of COPY, whose fields have no types. */
struct record {
    struct slice rest; /* the fields not taken yet */
    bool typed;
};

/* Takes the next field: type, length (-1: NULL) and bytes. Absent for NULL, or at the
 * end. */
static struct slice take_field(struct record *record)
{
    int32_t type, len;
    if ((record->typed && !pg_take_int4(&record->rest, &type)) ||
        !pg_take_int4(&record->rest, &len) || len < 0 || (size_t)len > record->rest.len)
        return (struct slice){ 0 };
    struct slice field = { record->rest.ptr, (size_t)len };
    record->rest = slice_from(record->rest, (size_t)len);
    return field;
}

static struct bytes *take_copy(struct record *record)
{
    return bytes_create(take_field(record));
}

static void read_column(struct slice value, const struct run_column *column,
                        struct run *run)
{
    int64_t number = column->type == COLUMN_TEXT ? 0 : number_of(value);
    bool is_set = column->type == COLUMN_TEXT ? value.ptr != NULL : number != 0;
    void *field = run_column_place(column, run, is_set);
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
    case COLUMN_TEXT: *(struct bytes **)field = bytes_create(value); break;
    case COLUMN_FLAGS: run_set_flags(run, (int)number); break;
    }
}

static void read_packets(struct record *record, struct run *run)
{
    run->payload = run_packet_create(take_field(record));
    struct bytes *payload_type = take_copy(record);
    run->output = run_packet_create(take_field(record));
    struct bytes *output_type = take_copy(record);
    if (payload_type || output_type) {
        run_rare_edit(run)->payload_type = payload_type;
        run_rare_edit(run)->output_type = output_type;
    }
    run->error = take_copy(record);
}

static void read_record(struct record *record, enum store_parts parts, struct run *run)
{
    struct slice id = take_field(record);
    if (id.ptr)
        memcpy(run->id, id.ptr, id.len < sizeof(run->id) ? id.len : sizeof(run->id) - 1);
    run->tags = run_tags_read(take_field(record));
    for (int i = 0; i < RUN_COLUMN_COUNT; i++)
        read_column(take_field(record), &run_columns[i], run);
    if (parts == STORE_FACTS_ALONE)
        return;
    run->metadata = run_packet_create(take_field(record));
    run->metadata_seed = take_copy(record);
    if (parts == STORE_PACKETS)
        read_packets(record, run);
}

void pg_rows_read_run(const PGresult *answer, int row, int column, enum store_parts parts,
                      struct run *run)
{
    struct record record = { pg_rows_bytes(answer, row, column), .typed = true };
    int32_t count;
    *run = (struct run){ 0 };
    if (pg_take_int4(&record.rest, &count))
        read_record(&record, parts, run);
}

/* Skips what precedes the fields.
 *
 * Before the first row: signature, flags, and a header with its length. Before each row:
 * the number of its fields; -1 after the last row. */
static struct record open_copied(struct slice row)
{
    static const char signature[] = "PGCOPY\n\377\r\n";
    int32_t flags, length;
    if (row.len > sizeof(signature) && !memcmp(row.ptr, signature, sizeof(signature))) {
        row = slice_from(row, sizeof(signature));
        if (!pg_take_int4(&row, &flags) || !pg_take_int4(&row, &length) || length < 0 ||
            (size_t)length > row.len)
            return (struct record){ 0 };
        row = slice_from(row, (size_t)length);
    }
    if (row.len < 2 || row.ptr[0] == '\377')
        return (struct record){ 0 };
    return (struct record){ slice_from(row, 2), .typed = false };
}

bool pg_rows_read_copied_rev(struct slice row, uint64_t *rev)
{
    struct record record = open_copied(row);
    if (!record.rest.len)
        return false;
    *rev = (uint64_t)number_of(take_field(&record));
    return true;
}

void pg_rows_read_copied(struct slice row, struct run *run)
{
    struct record record = open_copied(row);
    *run = (struct run){ 0 };
    take_field(&record); /* its rev */
    read_record(&record, STORE_PACKETS, run);
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
