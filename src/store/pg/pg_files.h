/* pg_files.h - the connection by which files of deployments are written and read, a piece at a
 * time, so that runs never wait for a piece. It is opened when the first one is asked for. */
#pragma once

#include "store/pg/pg_lead.h"
#include "store/pg/pg_link.h"

struct pg_files {
    struct store *store;
    const struct pg_lead *lead;
    struct pg_link link;
    struct list waiting; // store_file::link; the first one is under way if the link is busy
    uv_timer_t patience; /* while somebody waits: since the last answer */
    bool begun;          /* link and patience are there */
    unsigned open;       /* of link and patience, what is not closed yet */
    void (*stopped_fn)(struct pg_files *files);
};

/* The caller has set store and lead. */
void pg_files_start(struct pg_files *files, uv_loop_t *loop,
                    const struct pg_options *options);

void pg_files_ask(struct pg_files *files, struct store_file *req);

/* What is asked for is done first. stopped may be called at once. */
void pg_files_stop(struct pg_files *files, void (*stopped)(struct pg_files *files));
