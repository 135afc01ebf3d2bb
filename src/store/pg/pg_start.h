/* pg_start.h - a page of what a COPY sends: rows as they come, then runs.
 *
 * A start reads all unfinished runs, page by page. Each page as a statement of its own would cost
 * the server four times as much: so one COPY sends them all, and stands still between two pages
 * (pg_link.h). */
#pragma once

#include "store/pg/pg_link.h"

/* The zero value is an empty page. */
struct pg_start_page {
    struct slice *rows; /* libpq's */
    size_t count, capacity;
    size_t bytes;
    uint64_t last; /* the rev of its last row */
};

/* Takes rows that have come until the page is full, as req says it. True: it is. */
bool pg_start_take(struct pg_start_page *page, struct pg_link *link,
                   const struct store_walk *req);

/* Makes runs of the rows, which are freed; on a worker thread. */
void pg_start_read(struct pg_start_page *page, struct store_walk *req);

void pg_start_finish(struct pg_start_page *page);
