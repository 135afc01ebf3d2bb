/* db_stats.h - the size of a data directory by table and environment, as text or JSON. */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/error.h"

struct db_stats_options {
    const char *data;  /* path of the data directory */
    int64_t retain_ms; /* how long runs are kept; 0: forever */
    int64_t now_ms;    /* Unix */
    bool as_json;
};

/* Appends the statistics. ERR_STORE with the reason. */
enum err db_stats(const struct db_stats_options *options, struct buf *out,
                  struct failure *why);
