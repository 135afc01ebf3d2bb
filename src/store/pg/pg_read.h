/* pg_read.h - reads: connections that read, and who waits for one (read_line.h). */
#pragma once

#include "store/pg/pg_link.h"
#include "store/pg/sql/pg_query.h"
#include "store/read_line.h"

struct pg_readers;
struct pg_read;

struct pg_reader {
    struct pg_readers *all;
    struct pg_link link;
    struct pg_read *read; /* that it serves */
    uint64_t copied;      /* rows that its COPY has brought so far */
};

struct pg_readers {
    uv_loop_t *loop;
    const struct store *store; /* says whose an environment is */
    const struct pg_options *options;
    struct pg_reader readers[PG_READERS_MAX];
    size_t count;
    struct pg_reader *copying; /* NULL, or whose COPY stands still between two pages: */
    uint32_t copied_env;       /* of this environment, */
    uint64_t copied_to;        /* up to this rev */
    struct buf copied_rows;    /* of no page: memory for the next one's */
    struct read_line waiting;
    struct list reads; // pg_read::link; all that have no answer yet
    size_t slow;       /* of those that are served, the ones that are searched for */
    uv_timer_t patience;
    size_t links, handles; /* not closed yet */
    bool closing;
    void (*stopped_fn)(struct pg_readers *readers);
};

/* The caller has set store and options. */
void pg_readers_start(struct pg_readers *readers, uv_loop_t *loop);

void pg_readers_begin(struct pg_readers *readers, struct store_read *req);

/* When no read is left the connections are closed, and stopped is called, later. */
void pg_readers_stop(struct pg_readers *readers,
                     void (*stopped)(struct pg_readers *readers));
