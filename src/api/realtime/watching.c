/* watching.c - reads the filter of a live list.
 *
 * The filter is read like that of a list of runs, so that both have the same runs. */
#include "api/realtime/watching.h"

#include "api/runs/filter_words.h"
#include "api/runs/run_list.h"
#include "base/mem.h"

/* Makes the query, if the identity may list these runs. */
static enum err take(const struct identity *identity, const struct run_query *wanted,
                     struct query **query, struct failure *why)
{
    if (!api_identity_may_list(identity, &wanted->filter))
        return explain(why, ERR_FORBIDDEN,
                       "the token's scopes do not allow this list: read:runs does, or "
                       "read:tasks of each task that the filter names");
    *query = query_create(&wanted->filter, wanted->period_ms);
    return OK;
}

static const struct filter_purpose purpose = {
    .otherwise = "the list would have more runs",
    .takes_queue_words = true,
};

enum err watching_read(const struct identity *identity, const struct wire_message *watch,
                       enum vocabulary vocabulary, int64_t now_ms, struct query **query,
                       struct failure *why)
{
    json_t *words = json_object();
    enum err refused = OK;
    if (watch->wanted)
        refused = filter_words_read(watch->wanted, words, &purpose, why);
    if (refused) {
        json_decref(words);
        return refused;
    }
    struct filter_words *open = filter_words_open(words, vocabulary, false, now_ms, why);
    if (!open)
        return ERR_INVALID;
    refused = take(identity, &open->query, query, why);
    filter_words_close(open);
    return refused;
}

enum err watching_query(struct api_call *call, enum vocabulary vocabulary,
                        struct query **query)
{
    struct run_query *wanted = mem_new(struct run_query);
    struct failure why = { 0 };
    int64_t now = loop_wall_ms(engine_loop(api_engine(call->api)));
    call->vocabulary = vocabulary;
    enum err refused = run_query_read(call, false, now, wanted, &why);
    if (refused)
        explain(&call->why, refused, "%s: %.200s", wanted->wrong, why.text);
    else
        refused = take(call->identity, wanted, query, &call->why);
    run_list_report_times(call);
    free(wanted);
    return refused;
}

void watching_explain_limit(struct query_cost cost, struct failure *why)
{
    static const char limit[] =
        "too many different filters are watched in this environment or its project";
    if (cost.queries == 1)
        explain(why, ERR_BUSY,
                "%s; try again later, or narrow the rows of a subscription yourself",
                limit);
    else
        explain(why, ERR_BUSY,
                "%s, and this one counts as %zu because it names %zu values; try again "
                "later, or name fewer",
                limit, cost.queries, cost.values);
}
