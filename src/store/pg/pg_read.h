/* pg_read.h - the connections for reads, and the reads waiting for one (read_line.h). */
#pragma once

#include "store/pg/pg_link.h"
#include "store/pg/sql/pg_query.h"
#include "store/read_line.h"

struct pg_readers;
struct pg_read;

struct pg_reader {
    struct pg_readers *all;
    struct pg_link link;
    struct pg_read *read; /* being served; NULL: none */
    uint64_t copied;      /* rows that its COPY has returned so far */
};

struct pg_readers {
    uv_loop_t *loop;
    const struct store *store; /* its share_of returns the project of an environment */
    const struct pg_options *options;
    struct pg_reader readers[PG_READERS_MAX];
    size_t count;
    /* the one whose COPY is paused between two pages; NULL: none */
    struct pg_reader *copying;
    uint32_t copied_env;    /* environment of that COPY */
    uint64_t copied_to;     /* rev of its last row */
    struct buf copied_rows; /* memory for the next page, not in use */
    struct read_line waiting;
    struct list reads; // pg_read::link; all that have no answer yet
    size_t slow;       /* how many reads in progress are slow */
    uv_timer_t timeout;
    size_t links, handles; /* not closed yet */
    bool closing;
    void (*stopped_fn)(struct pg_readers *readers);
};

/* The caller must have set store and options. */
void pg_readers_start(struct pg_readers *readers, uv_loop_t *loop);

void pg_readers_begin(struct pg_readers *readers, struct store_read *req);

/* Another history is read from now on, by connections to a server of this timeline. */
void pg_readers_begin_history(struct pg_readers *readers, const char *timeline);

/* Closes the connections once no read is left, then calls stopped, later. */
void pg_readers_stop(struct pg_readers *readers,
                     void (*stopped)(struct pg_readers *readers));
