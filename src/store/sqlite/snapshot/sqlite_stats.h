/* sqlite_stats.h - how large a database is, and of what.
 *
 * Sizes of tables are asked page by page: all of the database is read once. */
#pragma once

#include "store/sqlite/snapshot/sqlite_look.h"

struct sqlite_file_stats {
    int64_t bytes,
        free_bytes; /* of the file; of pages in it that are used again by what comes */
    int64_t log_bytes;
};

/* A table with its indexes. */
struct sqlite_table_stats {
    const char *name;
    int64_t rows, bytes; /* bytes -1: this SQLite cannot tell */
};

/* What an environment stores, as its quota counts, and its runs by status. */
struct sqlite_env_stats {
    uint32_t env;
    int64_t stored;
    uint64_t runs[RUN_STATUS_COUNT];
};

/* What retention removes that keeps what was last changed since then. */
struct sqlite_retained_stats {
    int64_t runs, bytes; /* of ended runs: as they count for quotas */
};

/* Each ERR_STORE with the reason: the database cannot be read. What is handed over is borrowed. */
enum err sqlite_stats_file(struct sqlite_look *look, struct sqlite_file_stats *stats,
                           struct failure *why);
enum err sqlite_stats_tables(struct sqlite_look *look,
                             void (*take)(void *owner,
                                          const struct sqlite_table_stats *table),
                             void *owner, struct failure *why);
/* In the order of their numbers. */
enum err sqlite_stats_environments(struct sqlite_look *look,
                                   void (*take)(void *owner,
                                                const struct sqlite_env_stats *env),
                                   void *owner, struct failure *why);
enum err sqlite_stats_retained(struct sqlite_look *look, int64_t before_ms,
                               struct sqlite_retained_stats *stats, struct failure *why);
