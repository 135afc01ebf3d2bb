/* pg_files.h - the connection for files of deployments, which travel in pieces.
 *
 * Runs never wait for a piece. The connection is opened by the first request. */
#pragma once

#include "store/pg/pg_lead.h"
#include "store/pg/pg_link.h"

struct pg_files {
    struct store *store;
    const struct pg_lead *lead;
    struct pg_link link;
    struct list waiting; // store_file::link; the first one is in flight if the link is busy
    uv_timer_t timeout;  /* while requests wait: time since the last response */
    bool begun;          /* link and timeout are initialized */
    unsigned open;       /* how many of link and timeout are still open */
    void (*stopped_fn)(struct pg_files *files);
};

/* The caller must have set store and lead. */
void pg_files_start(struct pg_files *files, uv_loop_t *loop,
                    const struct pg_options *options);

void pg_files_ask(struct pg_files *files, struct store_file *req);

/* Finishes all requests first. May call stopped at once. */
void pg_files_stop(struct pg_files *files, void (*stopped)(struct pg_files *files));
