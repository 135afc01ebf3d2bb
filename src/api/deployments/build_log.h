/* build_log.h - what a build says, without the secrets that it was given.
 *
 *   pieces ─► secret_filter ─► the last MiB
 *
 * Values of the build's own variables and of secret variables of the environment are replaced
 * (secret_filter.h). */
#pragma once

#include "api/deployments/secret_filter.h"

enum {
    BUILD_LOG_MAX = 1 << 20, /* bytes */
};

struct build_log {
    struct buf text;
    struct secret_scan scan;
};

/* The filter is prepared, and the same each time. */
void build_log_add(struct build_log *log, const struct secret_filter *filter,
                   struct slice piece);

/* The log is complete. */
void build_log_end(struct build_log *log);

/* What is told of it: whole lines, the last MiB of them. */
struct slice build_log_text(const struct build_log *log);

/* The log has ended. */
void build_log_finish(struct build_log *log);
