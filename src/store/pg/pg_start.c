/* pg_start.c - rows wait for a worker: the loop looks at nothing in them but where the walk has
 * come to, from where a COPY that was cut off is begun again. They are copied out of the memory
 * that libpq gives each, so that this is freed where it was allocated, which costs the allocator
 * least. */
#include "store/pg/pg_start.h"

#include "base/mem.h"
#include "store/pg/sql/pg_rows.h"

static bool is_full(const struct pg_start_page *page, const struct store_walk *req)
{
    return page->count == req->limit ||
           (req->byte_limit && page->rows.len > req->byte_limit);
}

/* What cannot be read, or does not come after what came before, is missing in the count. */
static void keep(struct pg_start_page *page, struct slice row)
{
    uint64_t rev;
    if (!pg_rows_read_copied_rev(row, &rev) || rev <= page->last)
        return;
    page->last = rev;
    pg_add_int4(&page->rows, (int32_t)row.len);
    buf_add(&page->rows, row);
    page->count++;
}

bool pg_start_take(struct pg_start_page *page, struct pg_link *link,
                   const struct store_walk *req)
{
    struct slice row;
    while (!is_full(page, req) && (row = pg_link_take_row(link)).ptr) {
        keep(page, row);
        PQfreemem((void *)row.ptr);
    }
    return is_full(page, req);
}

static struct slice take_row(struct slice *rows)
{
    int32_t len = 0;
    pg_take_int4(rows, &len);
    struct slice row = { rows->ptr, (size_t)len };
    *rows = slice_from(*rows, (size_t)len);
    return row;
}

void pg_start_read(struct pg_start_page *page, struct store_walk *req)
{
    struct slice rows = buf_slice(&page->rows);
    req->runs = page->count ? mem_new_array(struct run, page->count) : NULL;
    for (req->count = 0; req->count < page->count; req->count++)
        pg_rows_read_copied(take_row(&rows), &req->runs[req->count]);
}

void pg_start_finish(struct pg_start_page *page)
{
    buf_finish(&page->rows);
    *page = (struct pg_start_page){ 0 };
}
