/* filter_words.h - reads a filter of runs from JSON, for bulk actions and live lists.
 *
 * Its members have the names and values of the SDK's runs.list. */
#pragma once

#include "api/runs/run_query.h"

/* The use of a filter. */
struct filter_purpose {
    /* The effect of ignoring a member, for errors: "the list would have more runs". */
    const char *otherwise;
    bool takes_queue_words; /* accept "task/hello" besides {"type":"task","name":"hello"} */
};

/* Reads the members of a filter into words: a JSON object of texts, with the names of the
 * query parameters of a list call. */
enum err filter_words_read(json_t *filter, json_t *words,
                           const struct filter_purpose *purpose, struct failure *why);

/* Words, and the query that they stand for. */
struct filter_words {
    json_t *json; /* the query points into it */
    struct run_query query;
};

/* Reads the words, and takes ownership of them. Returns NULL if they are invalid; why has
 * the reason. */
struct filter_words *filter_words_open(json_t *words, enum vocabulary vocabulary,
                                       bool any_time, int64_t now_ms, struct failure *why);
void filter_words_close(struct filter_words *words);
