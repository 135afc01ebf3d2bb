/* run_query.h - which runs a list call asks for: its query as a filter and a page.
 *
 * filter[…] and page[…] are rows of a table in run_query.c. A cursor is the id of the run at
 * the edge of a page, as base64url: ids sort by the time they were made. */
#pragma once

#include "api/request/call.h"

enum {
    QUERY_VALUES_MAX = 100, /* of one comma list */
    CURSOR_MAX = 64,        /* with its terminating zero */
};

/* The parameters of a filter, as the tables of routes have them. */
#define RUN_FILTER_QUERY                                                                   \
    "filter[status]?: string, filter[taskIdentifier]?: string, filter[version]?: string, " \
    "filter[tag]?: string, filter[bulkAction]?: string, filter[schedule]?: string, "       \
    "filter[isTest]?: 'true'|'false', filter[createdAt][from]?: string, "                  \
    "filter[createdAt][to]?: string, filter[createdAt][period]?: string, "                 \
    "filter[batch]?: string, filter[queue]?: string, filter[machine]?: string, "           \
    "filter[region]?: string, filter[rootOnly]?: 'true'|'false'"

struct run_query {
    struct run_filter filter; /* points into this struct and into the call's texts */
    char after[ID_MAX];       /* "": none */
    char before[ID_MAX];      /* wins over after */
    unsigned limit;
    int64_t period_ms;     /* that created_from was made of; 0: of none */
    unsigned environments; /* bit set of enum environment_type; 0: none was named */
    const char *wrong;     /* the parameter that was refused */

    struct slice tasks[QUERY_VALUES_MAX], versions[QUERY_VALUES_MAX];
    struct slice tags[QUERY_VALUES_MAX], queues[QUERY_VALUES_MAX];
    struct slice regions[QUERY_VALUES_MAX];
};

/* The same parameters from elsewhere than a call's query, as from the filter of a bulk action;
 * the first of a name counts. */
struct run_query_source {
    enum vocabulary vocabulary;
    const struct query_pair *pairs;
    size_t count;
    bool any_time; /* no week by default */
};

enum err run_query_read_from(const struct run_query_source *source, int64_t now_ms,
                             struct run_query *query, struct failure *why);

/* Of a call: the same, with a week by default or any time. ERR_INVALID with the reason and
 * query->wrong. The query stays where it is. */
enum err run_query_read(const struct api_call *call, bool any_time, int64_t now_ms,
                        struct run_query *query, struct failure *why);

void run_cursor(const char *run_id, char out[CURSOR_MAX]);
