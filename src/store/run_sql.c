/* run_sql.c - selects the columns of a run, adds up its texts, and makes its packets. */
#include "store/run_sql.h"

#include "base/escape.h"
#include "base/json/scan.h"
#include "base/rope.h"

bool run_column_is_asked(const struct run_column *column, enum column_texts which)
{
    return column->type == COLUMN_TEXT &&
           (which == COLUMN_TEXTS_ALL || column->life == COLUMN_CHANGES);
}

int64_t run_columns_size(const struct run *run, enum column_texts which)
{
    size_t sum = 0;
    for (int i = 0; i < RUN_COLUMN_COUNT; i++)
        if (run_column_is_asked(&run_columns[i], which))
            sum += run_column_text(&run_columns[i], run).len;
    return (int64_t)sum;
}

struct bytes *run_packet_create(struct slice value)
{
    struct bytes *packet = bytes_create(value);
    if (packet && packet->len >= ROPE_LONG) {
        scan_bytes_are_json(packet);
        escape_len_within(packet, bytes_slice(packet));
    }
    return packet;
}

/* ---- SQL ---- */

void run_columns_add(struct buf *sql, enum store_parts parts)
{
    buf_add_text(sql, "r.id, r.tags");
    for (int i = 0; i < RUN_COLUMN_COUNT; i++)
        buf_print(sql, ", r.%s", run_columns[i].name);
    if (parts != STORE_FACTS_ALONE)
        buf_add_text(sql, ", m.body, m.seed");
    if (parts == STORE_PACKETS)
        buf_add_text(sql, ", p.body, p.type, o.body, o.type, o.error");
}

void run_columns_add_joins(struct buf *sql, enum store_parts parts)
{
    if (parts != STORE_FACTS_ALONE)
        buf_add_text(sql, " LEFT JOIN run_metadata m ON m.env = r.env AND m.id = r.id");
    if (parts == STORE_PACKETS)
        buf_add_text(sql, " LEFT JOIN run_payload p ON p.env = r.env AND p.id = r.id"
                          " LEFT JOIN run_output o ON o.env = r.env AND o.id = r.id");
}
