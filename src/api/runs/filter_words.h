/* filter_words.h - a filter of runs that comes as JSON, with the names and values that the SDK's
 * runs.list has: of a bulk action, of a live list. */
#pragma once

#include "api/runs/run_query.h"

/* What a filter is for. */
struct filter_purpose {
    const char
        *otherwise; /* what would be without a member: "the list would have more runs" */
    bool takes_queue_words; /* "task/hello" beside {"type":"task","name":"hello"} */
};

/* Reads the members of a filter into words, an object of texts by the names that a list call
 * has. */
enum err filter_words_read(json_t *filter, json_t *words,
                           const struct filter_purpose *purpose, struct failure *why);

/* Words as what they ask for. */
struct filter_words {
    json_t *json; /* the query points into it */
    struct run_query query;
};

/* Takes over the words. NULL: they are refused, and why says which. */
struct filter_words *filter_words_open(json_t *words, enum vocabulary vocabulary,
                                       bool any_time, int64_t now_ms, struct failure *why);
void filter_words_close(struct filter_words *words);
