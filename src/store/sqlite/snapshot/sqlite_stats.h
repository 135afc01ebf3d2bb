/* sqlite_stats.h - sizes of a database: its file, tables, environments and old runs.
 *
 * The sizes of tables are added up page by page, which reads the whole database once. */
#pragma once

#include "store/sqlite/snapshot/sqlite_look.h"

struct sqlite_file_stats {
    int64_t bytes, free_bytes; /* of the file; of its free pages, which get reused */
    int64_t log_bytes;
};

/* A table with its indexes. */
struct sqlite_table_stats {
    const char *name;
    int64_t rows, bytes; /* bytes -1: unavailable in this SQLite */
};

/* The stored bytes of an environment, as its quota counts them, and its runs by status. */
struct sqlite_env_stats {
    uint32_t env;
    int64_t stored;
    uint64_t runs[RUN_STATUS_COUNT];
};

/* Runs that retention would remove, given the time of the oldest change it keeps. */
struct sqlite_retained_stats {
    int64_t runs, bytes; /* of ended runs; bytes as they count for quotas */
};

/* Each returns ERR_STORE with the reason if the database cannot be read. Values passed to
 * take are borrowed. */
enum err sqlite_stats_file(struct sqlite_look *look, struct sqlite_file_stats *stats,
                           struct failure *why);
enum err sqlite_stats_tables(struct sqlite_look *look,
                             void (*take)(void *owner,
                                          const struct sqlite_table_stats *table),
                             void *owner, struct failure *why);
/* Ordered by number. */
enum err sqlite_stats_environments(struct sqlite_look *look,
                                   void (*take)(void *owner,
                                                const struct sqlite_env_stats *env),
                                   void *owner, struct failure *why);
enum err sqlite_stats_retained(struct sqlite_look *look, int64_t before_ms,
                               struct sqlite_retained_stats *stats, struct failure *why);
