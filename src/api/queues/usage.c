/* usage.c - the runs and keys that use a concurrency limit or a queue, as clients see them. */
#include "api/queues/usage.h"

#include "api/queues/rate_settings.h"
#include "base/json/members.h"

enum {
    USAGE_MAX = 100,    /* runs of a kind, and keys, in a usage */
    USAGE_AMONG = 2048, /* runs that are searched for each kind */
};

struct usage {
    struct buf out;
    const struct api_call *call;
    bool is_limit;
    struct slice name;
};

/* ---- numbers and keys ---- */

void usage_add_current(struct buf *out, const struct queues *queues, uint32_t limit)
{
    if (limit == UINT32_MAX)
        buf_add_text(out, "{\"current\":null");
    else
        buf_print(out, "{\"current\":%u", limit < queues->limit ? limit : queues->limit);
}

void usage_add_number(struct buf *out, const char *member, bool is_set, uint32_t number)
{
    if (is_set && number != UINT32_MAX)
        buf_print(out, ",\"%s\":%u", member, number);
    else
        buf_print(out, ",\"%s\":null", member);
}

void usage_add_moment(struct buf *out, const char *member, bool is_set, int64_t time)
{
    buf_print(out, ",\"%s\":", member);
    if (is_set)
        buf_add_json_time(out, time);
    else
        buf_add_text(out, "null");
}

void usage_add_key(struct buf *out, const struct environment *env, bool is_limit,
                   struct slice name, struct slice key)
{
    const struct queues *queues = &env->queues;
    struct limit_override override = { .per_key = UINT32_MAX };
    struct queue_figures of_all =
        is_limit ? limits_figures(queues, name) : queues_figures(queues, name);
    struct queue_figures figures = is_limit
                                       ? limits_key_figures(queues, name, key, &override)
                                       : queues_key_figures(queues, name, key);
    bool is_set = override.per_key != UINT32_MAX;
    buf_add_text(out, "{\"name\":");
    buf_add_json(out, name);
    members_add_text(out, "concurrencyKey", key);
    buf_add_text(out, ",\"perKey\":");
    usage_add_current(out, queues, figures.limit);
    usage_add_number(out, "base", true, of_all.limit);
    usage_add_number(out, "override", is_set, override.per_key);
    usage_add_moment(out, "expiresAt", is_set, override.until);
    buf_print(out, "},\"running\":%u,\"reserved\":%u,\"queued\":%u,\"paused\":%s",
              figures.running, figures.reserved, figures.waiting,
              figures.settings.paused ? "true" : "false");
    rate_settings_show_key(out, env, is_limit, name, key);
    buf_add_char(out, '}');
}

static void add_keys(struct usage *usage)
{
    const struct environment *env = usage->call->env;
    struct slice keys[USAGE_MAX];
    size_t count = usage->is_limit
                       ? limits_keys(&env->queues, usage->name, keys, USAGE_MAX)
                       : queues_keys(&env->queues, usage->name, keys, USAGE_MAX);
    for (size_t i = 0; i < count; i++) {
        if (i)
            buf_add_char(&usage->out, ',');
        usage_add_key(&usage->out, env, usage->is_limit, usage->name, keys[i]);
    }
}

/* ---- runs ---- */

static void add_run(struct buf *out, const struct run *run, enum vocabulary vocabulary)
{
    buf_print(out, "{\"id\":\"%s\",\"status\":\"%s\"", run->id,
              run_status_name((enum run_status)run->status, vocabulary));
    members_add_text(out, "taskIdentifier", bytes_slice(run->task));
    members_add_text(out, "queue", bytes_slice(run->queue));
    members_add_text(out, "concurrencyKey", bytes_slice(run_rare(run)->concurrency_key));
    members_add_time(out, "createdAt", run->created_at);
    members_add_time(out, "startedAt", run->started_at);
    buf_add_char(out, '}');
}

static size_t find_items(const struct usage *usage, const struct list *line,
                         const struct queue_item **items, size_t most)
{
    const struct queues *queues = &usage->call->env->queues;
    return usage->is_limit
               ? limits_items(queues, line, usage->name, items, most, USAGE_AMONG)
               : queues_items(queues, line, usage->name, items, most, USAGE_AMONG);
}

/* Adds the runs of a line, after `before` others. Returns how many there are then, at most
 * USAGE_MAX. */
static size_t add_runs(struct usage *usage, const struct list *line, size_t before)
{
    const struct queue_item *items[USAGE_MAX];
    size_t count = find_items(usage, line, items, USAGE_MAX - before);
    for (size_t i = 0; i < count; i++) {
        if (before + i)
            buf_add_char(&usage->out, ',');
        add_run(&usage->out, &container_of(items[i], const struct tracked, item)->run,
                usage->call->vocabulary);
    }
    return before + count;
}

/* Runs that wait to resume go before those that have not started. */
void usage_reply(struct api_call *call, bool is_limit, struct slice name)
{
    const struct queues *queues = &call->env->queues;
    struct usage usage = { .call = call, .is_limit = is_limit, .name = name };
    buf_add_text(&usage.out, "{\"running\":[");
    add_runs(&usage, &queues->executing, 0);
    buf_add_text(&usage.out, "],\"queued\":[");
    add_runs(&usage, &queues->line, add_runs(&usage, &queues->resuming, 0));
    buf_add_text(&usage.out, "],\"keys\":[");
    add_keys(&usage);
    buf_add_text(&usage.out, "]}");
    api_reply_json(call, 200, buf_slice(&usage.out));
    buf_finish(&usage.out);
}
