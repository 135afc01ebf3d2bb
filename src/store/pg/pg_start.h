/* pg_start.h - a page of the runs that a start walks: rows of a COPY as they come, then runs.
 *
 * Each page as a statement of its own would cost the server four times as much: so one COPY sends
 * all runs, and stands still between two pages (pg_link.h). */
#pragma once

#include "store/pg/pg_link.h"

/* The zero value is an empty page. */
struct pg_start_page {
    struct buf rows; /* one behind the other, each after its length */
    size_t count;
    uint64_t last; /* the rev of its last row */
};

/* Takes rows that have come until the page is full, as req says it. True: it is. */
bool pg_start_take(struct pg_start_page *page, struct pg_link *link,
                   const struct store_walk *req);

/* Makes runs of the rows; on a worker thread. */
void pg_start_read(struct pg_start_page *page, struct store_walk *req);

void pg_start_finish(struct pg_start_page *page);
