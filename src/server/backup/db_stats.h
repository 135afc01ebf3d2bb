/* db_stats.h - how large a data directory is, and what of: for people, or as JSON. */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/error.h"

struct db_stats_options {
    const char *data;  /* path of the folder */
    int64_t retain_ms; /* what retention keeps; 0: everything */
    int64_t now_ms;    /* Unix */
    bool as_json;
};

/* Appends it. ERR_STORE with the reason. */
enum err db_stats(const struct db_stats_options *options, struct buf *out,
                  struct failure *why);
