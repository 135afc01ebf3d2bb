/* run_query.c - reads filter[…] and page[…] parameters, each by a row of a table.
 *
 *   lists       comma lists of names that become conditions unchanged
 *   parameters  words that are interpreted
 *   window      times of creation: a period overrides from and to; the default is a week */
#include "api/runs/run_query.h"

enum { PAGE_DEFAULT = 25, PAGE_MAX = 100, WINDOW_MS = 7 * 24 * 3600 * 1000 };

/* ---- lists ---- */

#define FILTER(member) offsetof(struct run_query, filter.member)
#define OWN(member) offsetof(struct run_query, member)

/* clang-format off */
static const struct list_parameter {
    const char *name;
    size_t values; /* struct slice [QUERY_VALUES_MAX] in struct run_query */
    size_t list;   /* struct slice * in its filter */
    size_t count;  /* size_t in its filter */
} lists[] = {
    { "filter[taskIdentifier]", OWN(tasks),    FILTER(tasks),    FILTER(task_count) },
    { "filter[version]",        OWN(versions), FILTER(versions), FILTER(version_count) },
    { "filter[tag]",            OWN(tags),     FILTER(tags),     FILTER(tag_count) },
    { "filter[queue]",          OWN(queues),   FILTER(queues),   FILTER(queue_count) },
    { "filter[region]",         OWN(regions),  FILTER(regions),  FILTER(region_count) },
};
/* clang-format on */

#undef FILTER
#undef OWN

static bool next_word(struct slice *text, struct slice *word)
{
    while (slice_split(text, ',', word)) {
        *word = slice_trim(*word);
        if (word->len)
            return true;
    }
    return false;
}

/* SDKs put "task/" before a task's queue, even if ctx.queue.name already begins with it. */
static struct slice without_repeated_prefix(struct slice queue)
{
    const struct slice prefix = SLICE("task/");
    return slice_starts(queue, "task/task/") ? slice_from(queue, prefix.len) : queue;
}

/* Reads a list of names. Skips empty ones; a name with a comma cannot be searched for. */
static enum err read_list(const struct list_parameter *row, struct slice text,
                          struct run_query *query, struct failure *why)
{
    char *base = (char *)query;
    struct slice *values = (struct slice *)(base + row->values), word;
    size_t *count = (size_t *)(base + row->count);

    *(struct slice **)(base + row->list) = values;
    while (next_word(&text, &word)) {
        if (*count == QUERY_VALUES_MAX)
            return explain(why, ERR_INVALID, "Must be at most %d values", QUERY_VALUES_MAX);
        bool is_queue = values == query->queues;
        values[(*count)++] = is_queue ? without_repeated_prefix(word) : word;
    }
    return OK;
}

/* ---- parameters ---- */

typedef enum err parameter_fn(const struct run_query_source *source, struct slice text,
                              struct run_query *query, struct failure *why);

static enum err read_statuses(const struct run_query_source *source, struct slice text,
                              struct run_query *query, struct failure *why)
{
    struct slice word;
    while (next_word(&text, &word)) {
        unsigned set = run_statuses_named(word, source->vocabulary);
        if (!set)
            return explain(why, ERR_INVALID, "\"%.*s\" is not a status of a run",
                           SLICE_ARG(word));
        query->filter.statuses |= set;
    }
    return OK;
}

static enum err read_machines(const struct run_query_source *source, struct slice text,
                              struct run_query *query, struct failure *why)
{
    struct slice word;
    enum machine machine;
    (void)source;
    while (next_word(&text, &word)) {
        if (machine_from_name(word, &machine))
            return explain(why, ERR_INVALID, "\"%.*s\" is not a machine preset",
                           SLICE_ARG(word));
        query->filter.machines |= 1u << machine;
    }
    return OK;
}

static enum err read_environments(const struct run_query_source *source, struct slice text,
                                  struct run_query *query, struct failure *why)
{
    struct slice word;
    enum environment_type type;
    (void)source;
    while (next_word(&text, &word)) {
        if (environment_type_from_slug(word, &type))
            return explain(
                why, ERR_INVALID,
                "\"%.*s\" is not an environment; use dev, staging, prod or preview",
                SLICE_ARG(word));
        query->environments |= 1u << type;
    }
    return OK;
}

static enum err read_is_test(const struct run_query_source *source, struct slice text,
                             struct run_query *query, struct failure *why)
{
    (void)source;
    if (!slice_is(text, "true") && !slice_is(text, "false"))
        return explain(why, ERR_INVALID, "Must be true or false");
    query->filter.is_test = slice_is(text, "true");
    return OK;
}

static enum err read_root_only(const struct run_query_source *source, struct slice text,
                               struct run_query *query, struct failure *why)
{
    (void)source;
    if (!slice_is(text, "true") && !slice_is(text, "false"))
        return explain(why, ERR_INVALID, "Must be true or false");
    if (slice_is(text, "true"))
        query->filter.parent = SLICE("");
    return OK;
}

static enum err read_batch(const struct run_query_source *source, struct slice text,
                           struct run_query *query, struct failure *why)
{
    (void)source, (void)why;
    query->filter.batch = text;
    return OK;
}

static enum err read_schedule(const struct run_query_source *source, struct slice text,
                              struct run_query *query, struct failure *why)
{
    (void)source, (void)why;
    query->filter.schedule = text;
    return OK;
}

static enum err read_bulk(const struct run_query_source *source, struct slice text,
                          struct run_query *query, struct failure *why)
{
    (void)source, (void)why;
    query->filter.bulk = text;
    return OK;
}

/* There are no error groups, so no run matches one. */
static enum err read_unknown(const struct run_query_source *source, struct slice text,
                             struct run_query *query, struct failure *why)
{
    (void)source, (void)text, (void)why;
    query->filter.nothing = true;
    return OK;
}

/* ---- the page ---- */

static enum err read_size(const struct run_query_source *source, struct slice text,
                          struct run_query *query, struct failure *why)
{
    uint64_t size;
    (void)source;
    if (text_to_u64(text, &size) || size < 1 || size > PAGE_MAX)
        return explain(why, ERR_INVALID, "Must be a number from 1 to %d", PAGE_MAX);
    query->limit = (unsigned)size;
    return OK;
}

static enum err read_cursor(struct slice text, char id[ID_MAX], struct failure *why)
{
    unsigned char raw[CURSOR_MAX];
    size_t len = 0;
    bool fits = text.len < CURSOR_MAX && !text_from_base64url(text, raw, &len);
    struct slice found = { (const char *)raw, len };
    if (!fits || len >= ID_MAX || !text_is_id(found, "run"))
        return explain(why, ERR_INVALID, "Must be a cursor from an earlier page");
    snprintf(id, ID_MAX, "%.*s", SLICE_ARG(found));
    return OK;
}

static enum err read_after(const struct run_query_source *source, struct slice text,
                           struct run_query *query, struct failure *why)
{
    (void)source;
    return read_cursor(text, query->after, why);
}

static enum err read_before(const struct run_query_source *source, struct slice text,
                            struct run_query *query, struct failure *why)
{
    (void)source;
    return read_cursor(text, query->before, why);
}

void run_cursor(const char *run_id, char out[CURSOR_MAX])
{
    out[text_to_base64url(slice_of(run_id), out)] = 0;
}

/* ---- the window ---- */

/* Reads a time. Returns 1 for 0 and below, because 0 would mean an open end. */
static enum err read_time(struct slice text, int64_t *unix_ms, struct failure *why)
{
    int64_t time;
    if (text_to_i64(text, &time) && text_to_time(text, &time))
        return explain(why, ERR_INVALID,
                       "Must be a time: Unix milliseconds or an ISO 8601 date");
    *unix_ms = time > 0 ? time : 1;
    return OK;
}

static struct slice value_of(const struct run_query_source *source, struct run_query *query,
                             const char *name)
{
    query->wrong = name;
    for (size_t i = 0; i < source->count; i++)
        if (slice_is(source->pairs[i].name, name))
            return slice_trim(source->pairs[i].value);
    return (struct slice){ 0 };
}

static enum err read_window(const struct run_query_source *source, int64_t now_ms,
                            struct run_query *query, struct failure *why)
{
    struct run_filter *filter = &query->filter;
    int64_t period;
    struct slice text = value_of(source, query, "filter[createdAt][period]");
    if (text.len) {
        if (text_to_duration_ms(text, &period))
            return explain(why, ERR_INVALID, "Must be a duration such as 30m, 12h or 7d");
        query->period_ms = period;
        filter->created_from = now_ms > period ? now_ms - period : 1;
        return OK;
    }
    text = value_of(source, query, "filter[createdAt][from]");
    if (text.len && read_time(text, &filter->created_from, why))
        return ERR_INVALID;
    text = value_of(source, query, "filter[createdAt][to]");
    if (text.len && read_time(text, &filter->created_to, why))
        return ERR_INVALID;
    if (!source->any_time && !filter->created_from && !filter->created_to) {
        query->period_ms = WINDOW_MS;
        filter->created_from = now_ms - WINDOW_MS;
    }
    return OK;
}

/* ---- the whole query ---- */

/* clang-format off */
static const struct parameter {
    const char *name;
    parameter_fn *read;
} parameters[] = {
    { "filter[status]",     read_statuses },
    { "filter[machine]",    read_machines },
    { "filter[env]",        read_environments },
    { "filter[isTest]",     read_is_test },
    { "filter[rootOnly]",   read_root_only },
    { "filter[batch]",      read_batch },
    { "filter[schedule]",   read_schedule },
    { "filter[bulkAction]", read_bulk },
    { "filter[error]",      read_unknown },
    { "page[size]",         read_size },
    { "page[after]",        read_after },
    { "page[before]",       read_before },
};
/* clang-format on */

enum err run_query_read_from(const struct run_query_source *source, int64_t now_ms,
                             struct run_query *query, struct failure *why)
{
    *query = (struct run_query){ .limit = PAGE_DEFAULT, .filter = { .is_test = -1 } };
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        struct slice text = value_of(source, query, lists[i].name);
        if (text.len && read_list(&lists[i], text, query, why))
            return ERR_INVALID;
    }
    for (size_t i = 0; i < sizeof(parameters) / sizeof(parameters[0]); i++) {
        struct slice text = value_of(source, query, parameters[i].name);
        if (text.len && parameters[i].read(source, text, query, why))
            return ERR_INVALID;
    }
    if (read_window(source, now_ms, query, why))
        return ERR_INVALID;
    query->wrong = NULL;
    return OK;
}

enum err run_query_read(const struct api_call *call, bool any_time, int64_t now_ms,
                        struct run_query *query, struct failure *why)
{
    const struct run_query_source source = { .vocabulary = call->vocabulary,
                                             .pairs = call->query,
                                             .count = call->query_count,
                                             .any_time = any_time };
    return run_query_read_from(&source, now_ms, query, why);
}
