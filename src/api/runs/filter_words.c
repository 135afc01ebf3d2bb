/* filter_words.c - turns the members of a filter into query parameters of a list call.
 *
 *   {"tag":["a","b"],"period":"1d"}
 *      ─► {"filter[tag]":"a,b","filter[createdAt][period]":"1d"} ─► read by run_query.c
 *
 * Unknown members are an error: if they were ignored, the filter would match more runs than
 * intended. */
#include "api/runs/filter_words.h"

#include "base/mem.h"

enum { WORDS_MAX = 16 };

/* ---- a filter's members ---- */

/* clang-format off */
static const struct filter_member {
    const char *name;
    const char *word;
    bool is_list; /* may have several values */
} members[] = {
    { "status",         "filter[status]",            true },
    { "taskIdentifier", "filter[taskIdentifier]",    true },
    { "version",        "filter[version]",           true },
    { "bulkAction",     "filter[bulkAction]",        false },
    { "tag",            "filter[tag]",               true },
    { "schedule",       "filter[schedule]",          false },
    { "isTest",         "filter[isTest]",            false },
    { "rootOnly",       "filter[rootOnly]",          false },
    { "batch",          "filter[batch]",             false },
    { "queue",          "filter[queue]",             true },
    { "machine",        "filter[machine]",           true },
    { "region",         "filter[region]",            true },
    { "from",           "filter[createdAt][from]",   false },
    { "to",             "filter[createdAt][to]",     false },
    { "period",         "filter[createdAt][period]", false },
};
/* clang-format on */

/* Returns NULL if there is no such filter. */
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

/* Adds a value to a list joined by commas, so no value may have one. */
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

static enum err add_value(const char *member, const json_t *value,
                          const struct filter_purpose *purpose, struct buf *out,
                          struct failure *why)
{
    const char *type = json_string_value(json_object_get(value, "type"));
    if (strcmp(member, "queue") || (json_is_string(value) && purpose->takes_queue_words))
        return add_text(member, "", value, out, why);
    if (!type || (strcmp(type, "task") && strcmp(type, "custom")))
        return explain(why, ERR_INVALID,
                       "filter.queue: must have a type, task or custom, and a name");
    const json_t *name = json_object_get(value, "name");
    bool has_prefix = slice_starts(slice_trim(text_of(name)), "task/"); /* ctx.queue.name */
    return add_text(member, strcmp(type, "task") || has_prefix ? "" : "task/", name, out,
                    why);
}

/* Reads a member of a filter. Adds nothing if it is null or empty. */
static enum err read_member(const struct filter_member *member, const json_t *value,
                            const struct filter_purpose *purpose, struct buf *out,
                            struct failure *why)
{
    bool is_time = !strcmp(member->name, "from") || !strcmp(member->name, "to");
    enum err refused = OK;
    if (json_is_null(value))
        return OK;
    if (!strcmp(member->name, "isTest") || !strcmp(member->name, "rootOnly")) {
        if (!json_is_boolean(value))
            return explain(why, ERR_INVALID, "filter.%s: must be true or false",
                           member->name);
        buf_add_text(out, json_is_true(value) ? "true" : "false");
    } else if (is_time && json_is_number(value)) {
        buf_print(out, "%.0f", json_number_value(value));
    } else if (json_is_array(value) && member->is_list) {
        for (size_t i = 0; !refused && i < json_array_size(value); i++)
            refused = add_value(member->name, json_array_get(value, i), purpose, out, why);
    } else {
        refused = add_value(member->name, value, purpose, out, why);
    }
    return refused;
}

enum err filter_words_read(json_t *filter, json_t *words,
                           const struct filter_purpose *purpose, struct failure *why)
{
    if (!json_is_object(filter))
        return explain(why, ERR_INVALID, "filter: must be an object");
    struct buf text = { 0 };
    enum err refused = OK;
    const char *nothing = NULL; /* name of a member that is null or empty */
    for (void *at = json_object_iter(filter); !refused && at;
         at = json_object_iter_next(filter, at)) {
        const struct filter_member *member = member_of(json_object_iter_key(at));
        buf_clear(&text);
        refused = member
                      ? read_member(member, json_object_iter_value(at), purpose, &text, why)
                      : explain(why, ERR_INVALID,
                                "filter.%.60s: unknown filter, and without it %s",
                                json_object_iter_key(at), purpose->otherwise);
        if (!refused && text.len)
            json_object_set_new(words, member->word,
                                json_stringn_nocheck(text.ptr, text.len));
        else if (!refused)
            nothing = member->name;
    }
    if (!refused && nothing)
        refused = explain(why, ERR_INVALID, "filter.%s: empty, and without it %s", nothing,
                          purpose->otherwise);
    bool spans = json_object_get(filter, "from") || json_object_get(filter, "to");
    if (!refused && spans && json_object_get(filter, "period"))
        refused = explain(why, ERR_INVALID,
                          "filter.period: would replace from and to, and select other "
                          "runs; send either period, or from and to");
    buf_finish(&text);
    return refused;
}

/* ---- reading words ---- */

struct filter_words *filter_words_open(json_t *words, enum vocabulary vocabulary,
                                       bool any_time, int64_t now_ms, struct failure *why)
{
    struct filter_words *open = mem_new(struct filter_words);
    struct query_pair pairs[WORDS_MAX];
    struct run_query_source source = { .vocabulary = vocabulary,
                                       .pairs = pairs,
                                       .any_time = any_time };
    struct failure wrong = { 0 };
    open->json = words;
    for (void *at = json_object_iter(words); at && source.count < WORDS_MAX;
         at = json_object_iter_next(words, at)) {
        pairs[source.count++] = (struct query_pair){ slice_of(json_object_iter_key(at)),
                                                     text_of(json_object_iter_value(at)) };
    }
    if (!run_query_read_from(&source, now_ms, &open->query, &wrong))
        return open;
    explain(why, ERR_INVALID, "%s: %.200s", open->query.wrong, wrong.text);
    filter_words_close(open);
    return NULL;
}

void filter_words_close(struct filter_words *words)
{
    if (!words)
        return;
    json_decref(words->json);
    free(words);
}
