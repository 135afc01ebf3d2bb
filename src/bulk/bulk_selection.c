/* bulk_selection.c - which runs an action means.
 *
 *   {"runIds":["run_…",…]}                              each once, newest first
 *   {"vocabulary":1,"filter":{"filter[tag]":"a,b",…}}   the words of a list call
 *
 * Times are not among the words: the action has them as numbers, fixed when it was made. */
#include "base/mem.h"
#include "bulk/bulk.h"
#include "runs/run_query.h"

enum { WORDS_MAX = 16 };

/* ---- a filter's members ---- */

/* clang-format off */
static const struct filter_member {
    const char *name;
    const char *word;
    bool is_list; /* or one value */
} members[] = {
    { "status",         "filter[status]",            true },
    { "taskIdentifier", "filter[taskIdentifier]",    true },
    { "version",        "filter[version]",           true },
    { "bulkAction",     "filter[bulkAction]",        false },
    { "tag",            "filter[tag]",               true },
    { "schedule",       "filter[schedule]",          false },
    { "isTest",         "filter[isTest]",            false },
    { "batch",          "filter[batch]",             false },
    { "queue",          "filter[queue]",             true },
    { "machine",        "filter[machine]",           true },
    { "region",         "filter[region]",            true },
    { "from",           "filter[createdAt][from]",   false },
    { "to",             "filter[createdAt][to]",     false },
    { "period",         "filter[createdAt][period]", false },
};
/* clang-format on */

/* NULL: there is no such filter. */
static const struct filter_member *member_of(const char *name)
{
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
        if (!strcmp(members[i].name, name))
            return &members[i];
    return NULL;
}

static struct slice text_of(const json_t *value)
{
    return (struct slice){ json_string_value(value), json_string_length(value) };
}

/* Lists are joined by commas, so no value may have one. */
static enum err add_text(const char *member, const char *prefix, const json_t *value,
                         struct buf *out, struct failure *why)
{
    struct slice text = slice_trim(text_of(value));
    if (!json_is_string(value))
        return explain(why, ERR_INVALID, "filter.%s: must be a string%s", member,
                       member_of(member)->is_list ? " or a list of them" : "");
    if (memchr(text.ptr, ',', text.len))
        return explain(why, ERR_INVALID, "filter.%s: a value cannot have a comma", member);
    if (!text.len)
        return OK;
    if (out->len)
        buf_add_char(out, ',');
    buf_add_text(out, prefix);
    buf_add(out, text);
    return OK;
}

static enum err add_value(const char *member, const json_t *value, struct buf *out,
                          struct failure *why)
{
    const char *type = json_string_value(json_object_get(value, "type"));
    if (strcmp(member, "queue"))
        return add_text(member, "", value, out, why);
    if (!type || (strcmp(type, "task") && strcmp(type, "custom")))
        return explain(why, ERR_INVALID,
                       "filter.queue: must have a type, task or custom, and a name");
    return add_text(member, strcmp(type, "task") ? "" : "task/",
                    json_object_get(value, "name"), out, why);
}

/* Reads a member of a filter; nothing is added for what is null or empty. */
static enum err read_member(const struct filter_member *member, const json_t *value,
                            struct buf *out, struct failure *why)
{
    bool is_time = !strcmp(member->name, "from") || !strcmp(member->name, "to");
    enum err refused = OK;
    if (json_is_null(value))
        return OK;
    if (!strcmp(member->name, "isTest")) {
        if (!json_is_boolean(value))
            return explain(why, ERR_INVALID, "filter.isTest: must be true or false");
        buf_add_text(out, json_is_true(value) ? "true" : "false");
    } else if (is_time && json_is_number(value)) {
        buf_print(out, "%.0f", json_number_value(value));
    } else if (json_is_array(value) && member->is_list) {
        for (size_t i = 0; !refused && i < json_array_size(value); i++)
            refused = add_value(member->name, json_array_get(value, i), out, why);
    } else {
        refused = add_value(member->name, value, out, why);
    }
    return refused;
}

static enum err read_words(json_t *filter, json_t *words, struct failure *why)
{
    struct buf text = { 0 };
    enum err refused = OK;
    const char *nothing = NULL; /* the name of a member that is null or empty */
    for (void *at = json_object_iter(filter); !refused && at;
         at = json_object_iter_next(filter, at)) {
        const struct filter_member *member = member_of(json_object_iter_key(at));
        buf_clear(&text);
        refused = member ? read_member(member, json_object_iter_value(at), &text, why)
                         : explain(why, ERR_INVALID,
                                   "filter.%.60s: there is no such filter, and without it "
                                   "the action would reach more runs",
                                   json_object_iter_key(at));
        if (!refused && text.len)
            json_object_set_new(words, member->word, json_stringn(text.ptr, text.len));
        else if (!refused)
            nothing = member->name;
    }
    if (!refused && nothing && json_object_size(words))
        refused = explain(why, ERR_INVALID,
                          "filter.%s: it names nothing, and without it the action would "
                          "reach more runs",
                          nothing);
    bool spans = json_object_get(filter, "from") || json_object_get(filter, "to");
    if (!refused && spans && json_object_get(filter, "period"))
        refused = explain(why, ERR_INVALID,
                          "filter.period: it would count instead of from and to, and the "
                          "action reach other runs: send one or the others");
    buf_finish(&text);
    return refused;
}

/* ---- a filter at work ---- */

struct bulk_filter {
    json_t *json; /* the words point into it */
    struct query_pair pairs[WORDS_MAX];
    struct run_query query;
};

/* Makes a filter of words, which it takes over. */
static struct bulk_filter *filter_of(json_t *words, enum vocabulary vocabulary,
                                     int64_t now_ms, struct failure *why)
{
    struct bulk_filter *filter = mem_new(struct bulk_filter);
    struct run_query_source source = { .vocabulary = vocabulary,
                                       .pairs = filter->pairs,
                                       .any_time = true };
    filter->json = words;
    for (void *at = json_object_iter(words); at && source.count < WORDS_MAX;
         at = json_object_iter_next(words, at)) {
        filter->pairs[source.count++] =
            (struct query_pair){ slice_of(json_object_iter_key(at)),
                                 text_of(json_object_iter_value(at)) };
    }
    struct failure wrong = { 0 };
    if (!run_query_read_from(&source, now_ms, &filter->query, &wrong))
        return filter;
    explain(why, ERR_INVALID, "%s: %.200s", filter->query.wrong, wrong.text);
    bulk_filter_close(filter);
    return NULL;
}

struct bulk_filter *bulk_filter_open(const struct bulk_action *action)
{
    struct failure why;
    struct slice text = bytes_slice(action->selection);
    json_t *selection = json_loadb(text.ptr, text.len, 0, NULL);
    json_t *words = json_incref(json_object_get(selection, "filter"));
    json_int_t vocabulary = json_integer_value(json_object_get(selection, "vocabulary"));
    json_decref(selection);
    return filter_of(words, (enum vocabulary)vocabulary, 0, &why);
}

const struct run_filter *bulk_filter_of(const struct bulk_filter *filter)
{
    return &filter->query.filter;
}

void bulk_filter_close(struct bulk_filter *filter)
{
    if (!filter)
        return;
    json_decref(filter->json);
    free(filter);
}

static const char *const times[] = { "filter[createdAt][from]", "filter[createdAt][to]",
                                     "filter[createdAt][period]" };

static enum err read_filter(json_t *filter, enum vocabulary vocabulary, int64_t now_ms,
                            struct bulk_action *action, struct failure *why)
{
    json_t *words = json_object();
    enum err refused = json_is_object(filter)
                           ? read_words(filter, words, why)
                           : explain(why, ERR_INVALID, "filter: must be an object");
    if (!refused && !json_object_size(words))
        refused = explain(why, ERR_INVALID, "At least one filter must be provided");
    struct bulk_filter *read =
        refused ? NULL : filter_of(json_incref(words), vocabulary, now_ms, why);
    if (read) {
        const struct run_filter *found = &read->query.filter;
        action->from = found->created_from > 0 ? found->created_from : 1;
        action->until =
            found->created_to && found->created_to < now_ms ? found->created_to : now_ms;
        for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
            json_object_del(words, times[i]);
        struct buf text = { 0 };
        char *dumped = json_dumps(words, JSON_COMPACT);
        buf_print(&text, "{\"vocabulary\":%d,\"filter\":%s}", (int)vocabulary, dumped);
        action->selection = buf_to_bytes(&text);
        buf_finish(&text);
        free(dumped);
    }
    bulk_filter_close(read);
    json_decref(words);
    return refused ? refused : read ? OK : ERR_INVALID;
}

/* ---- ids ---- */

static int newest_first(const void *a, const void *b)
{
    return slice_compare(*(const struct slice *)b, *(const struct slice *)a);
}

static enum err sorted_ids(const json_t *list, struct slice *ids, struct failure *why)
{
    size_t count = json_array_size(list);
    for (size_t i = 0; i < count; i++) {
        ids[i] = text_of(json_array_get(list, i));
        if (!ids[i].ptr || !text_is_id(ids[i], "run"))
            return explain(why, ERR_INVALID, "runIds[%zu]: is not the id of a run", i);
    }
    qsort(ids, count, sizeof(ids[0]), newest_first);
    return OK;
}

static enum err read_ids(const json_t *list, struct bulk_action *action,
                         struct failure *why)
{
    size_t count = json_array_size(list);
    struct buf text = { 0 };
    if (!json_is_array(list) || !count || count > BULK_IDS_MAX)
        return explain(why, ERR_INVALID, "runIds: must be a list of 1 to %d ids",
                       BULK_IDS_MAX);
    struct slice *ids = mem_new_array(struct slice, count);
    enum err refused = sorted_ids(list, ids, why);
    buf_add_text(&text, "{\"runIds\":[");
    for (size_t i = 0; !refused && i < count; i++) {
        if (i && slice_equal(ids[i], ids[i - 1]))
            continue;
        buf_print(&text, "%s\"%.*s\"", action->progress.total++ ? "," : "",
                  SLICE_ARG(ids[i]));
    }
    buf_add_text(&text, "]}");
    if (!refused) {
        action->selection = buf_to_bytes(&text);
        action->progress.counted = true;
    }
    buf_finish(&text);
    free(ids);
    return refused;
}

enum err bulk_selection_read(const json_t *body, enum vocabulary vocabulary, int64_t now_ms,
                             struct bulk_action *action, struct failure *why)
{
    json_t *ids = json_object_get(body, "runIds"),
           *filter = json_object_get(body, "filter");
    action->from = 1;
    action->until = now_ms;
    enum err refused =
        !ids == !filter
            ? explain(why, ERR_INVALID, "Exactly one of filter or runIds must be provided")
        : ids ? read_ids(ids, action, why)
              : read_filter(filter, vocabulary, now_ms, action, why);
    action->progress.to = action->until;
    return refused;
}

int bulk_selection_ids(const struct bulk_action *action, const char *after,
                       char ids[][ID_MAX], int max)
{
    struct slice text = bytes_slice(action->selection);
    json_t *selection = json_loadb(text.ptr, text.len, 0, NULL);
    const json_t *list = json_object_get(selection, "runIds");
    size_t size = json_array_size(list);
    int count = list ? 0 : -1;
    for (size_t i = 0; i < size && count < max; i++) {
        const char *id = json_string_value(json_array_get(list, i));
        if (!after[0] || strcmp(id, after) < 0)
            snprintf(ids[count++], ID_MAX, "%s", id);
    }
    json_decref(selection);
    return count;
}
