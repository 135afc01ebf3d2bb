/* build_log.h - what a build says, without the secrets that it was given.
 *
 *   pieces ─► secret_filter ─► the last MiB
 *
 * Values of the build's own variables and of secret variables of the environment are replaced
 * when they are 8 bytes or longer: shorter ones would tear holes into every text. So are they as
 * they stand inside of JSON. */
#pragma once

#include "base/buf.h"

enum {
    SECRET_LEAST = 8, /* bytes */
    BUILD_LOG_MAX = 1 << 20,
};

struct secret_pattern {
    uint64_t begin; /* its first eight bytes */
    char *text;
    size_t len;
};

struct secret_filter {
    struct secret_pattern *patterns; /* by begin, of the same the longest first */
    size_t count;
    size_t longest;
    uint64_t begins[64]; /* bits of hashes of the beginnings that there are */
};

/* Takes a copy; a short one means nothing. */
void secret_filter_add(struct secret_filter *filter, struct slice value);

/* The values of an object of texts, valid JSON. */
void secret_filter_add_all(struct secret_filter *filter, struct slice object);

/* All are added. */
void secret_filter_sort(struct secret_filter *filter);

/* Appends the text with "<redacted>" for each secret in it. */
void secret_filter_apply(const struct secret_filter *filter, struct slice text,
                         struct buf *out);

/* Wipes what it knows. A zeroed one is fine, and replaces nothing. */
void secret_filter_finish(struct secret_filter *filter);

struct build_log {
    struct buf text;
    struct buf held; /* the end of what has come: a secret may begin there */
};

void build_log_add(struct build_log *log, const struct secret_filter *filter,
                   struct slice piece);

/* Nothing comes any more. */
void build_log_end(struct build_log *log, const struct secret_filter *filter);

/* What is told of it: whole lines, the last MiB of them. */
struct slice build_log_text(const struct build_log *log);

void build_log_finish(struct build_log *log);
