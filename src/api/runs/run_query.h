/* run_query.h - reads the query of a list call as a filter of runs and a page.
 *
 * Each filter[…] and page[…] parameter is a row of a table in run_query.c. A cursor is
 * the id of the first or last run of a page, in base64url: ids sort by creation time. */
#pragma once

#include "api/request/call.h"

enum {
    QUERY_VALUES_MAX = 100, /* in one comma list */
    CURSOR_MAX = 64,        /* including the terminating zero */
};

/* The parameters of a filter, in the notation of route tables. */
#define RUN_FILTER_QUERY                                                                   \
    "filter[status]?: string, filter[taskIdentifier]?: string, filter[version]?: string, " \
    "filter[tag]?: string, filter[bulkAction]?: string, filter[schedule]?: string, "       \
    "filter[isTest]?: 'true'|'false', filter[createdAt][from]?: string, "                  \
    "filter[createdAt][to]?: string, filter[createdAt][period]?: string, "                 \
    "filter[batch]?: string, filter[queue]?: string, filter[machine]?: string, "           \
    "filter[region]?: string, filter[rootOnly]?: 'true'|'false'"

struct run_query {
    struct run_filter filter; /* points into this struct and into the call's texts */
    char after[ID_MAX];       /* id; "": none */
    char before[ID_MAX];      /* id; overrides after */
    unsigned limit;
    int64_t period_ms;     /* created_from was computed from it; 0: from none */
    unsigned environments; /* bits by enum environment_type; 0: none was named */
    const char *wrong;     /* name of the invalid parameter */

    struct slice tasks[QUERY_VALUES_MAX], versions[QUERY_VALUES_MAX];
    struct slice tags[QUERY_VALUES_MAX], queues[QUERY_VALUES_MAX];
    struct slice regions[QUERY_VALUES_MAX];
};

/* A source of the parameters: a call's query, or the filter of a bulk action. The first
 * of each name counts. */
struct run_query_source {
    enum vocabulary vocabulary;
    const struct query_pair *pairs;
    size_t count;
    bool any_time; /* by default, runs created at any time, not in the last week */
};

enum err run_query_read_from(const struct run_query_source *source, int64_t now_ms,
                             struct run_query *query, struct failure *why);

/* Reads the query of a call. Returns ERR_INVALID with the reason in why and the name in
 * query->wrong. query must not be copied or moved: its filter points into it. */
enum err run_query_read(const struct api_call *call, bool any_time, int64_t now_ms,
                        struct run_query *query, struct failure *why);

void run_cursor(const char *run_id, char out[CURSOR_MAX]);
