/* pg_start.c - rows wait for a worker as libpq gives them: the loop looks at nothing in them but
 * where the walk has come to, from where a COPY that was cut off is begun again. */
#include "store/pg/pg_start.h"

#include "base/mem.h"
#include "store/pg/pg_rows.h"

static bool is_full(const struct pg_start_page *page, const struct store_walk *req)
{
    return page->count == req->limit || (req->byte_limit && page->bytes > req->byte_limit);
}

static void keep(struct pg_start_page *page, struct slice row)
{
    if (!pg_rows_read_copied_rev(row, &page->last)) {
        PQfreemem((void *)row.ptr);
        return;
    }
    if (page->count == page->capacity) {
        page->capacity = page->capacity ? 2 * page->capacity : 64;
        page->rows = mem_resize(page->rows, page->capacity * sizeof(page->rows[0]));
    }
    page->rows[page->count++] = row;
    page->bytes += row.len;
}

bool pg_start_take(struct pg_start_page *page, struct pg_link *link,
                   const struct store_walk *req)
{
    struct slice row;
    while (!is_full(page, req) && (row = pg_link_take_row(link)).ptr)
        keep(page, row);
    return is_full(page, req);
}

void pg_start_read(struct pg_start_page *page, struct store_walk *req)
{
    req->runs = page->count ? mem_new_array(struct run, page->count) : NULL;
    req->count = page->count;
    for (size_t i = 0; i < page->count; i++)
        pg_rows_read_copied(page->rows[i], &req->runs[i]);
    pg_start_finish(page);
}

void pg_start_finish(struct pg_start_page *page)
{
    for (size_t i = 0; i < page->count; i++)
        PQfreemem((void *)page->rows[i].ptr);
    free(page->rows);
    *page = (struct pg_start_page){ 0 };
}
