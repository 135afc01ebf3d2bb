/* bulk_selection.c - reads and stores the selection of a bulk action's runs.
 *
 *   {"runIds":["run_…",…]}                              each once, newest first
 *   {"vocabulary":1,"filter":{"filter[tag]":"a,b",…}}   the parameters of a list call
 *
 * Times are not among the parameters: the action stores them as numbers, fixed at
 * creation. */
#include "api/bulk/bulk.h"
#include "api/runs/filter_words.h"
#include "base/json/json_tree.h"
#include "base/mem.h"

static struct slice text_of(const json_t *value)
{
    return (struct slice){ json_string_value(value), json_string_length(value) };
}

/* ---- a filter ---- */

struct filter_words *bulk_selection_open(const struct bulk_action *action)
{
    struct failure why;
    struct slice text = bytes_slice(action->selection);
    json_t *selection = json_tree_read(text, 0, NULL);
    json_t *words = json_incref(json_object_get(selection, "filter"));
    json_int_t vocabulary = json_integer_value(json_object_get(selection, "vocabulary"));
    json_decref(selection);
    return filter_words_open(words, (enum vocabulary)vocabulary, true, 0, &why);
}

static const struct filter_purpose purpose = {
    .otherwise = "the action would reach more runs",
};

static const char *const times[] = { "filter[createdAt][from]", "filter[createdAt][to]",
                                     "filter[createdAt][period]" };

static enum err read_filter(json_t *filter, enum vocabulary vocabulary, int64_t now_ms,
                            struct bulk_action *action, struct failure *why)
{
    json_t *words = json_object();
    enum err refused = filter_words_read(filter, words, &purpose, why);
    if (!refused && !json_object_size(words))
        refused = explain(why, ERR_INVALID, "At least one filter must be provided");
    struct filter_words *read =
        refused ? NULL
                : filter_words_open(json_incref(words), vocabulary, true, now_ms, why);
    if (read) {
        const struct run_filter *found = &read->query.filter;
        action->from = found->created_from > 0 ? found->created_from : 1;
        action->until =
            found->created_to && found->created_to < now_ms ? found->created_to : now_ms;
        for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
            json_object_del(words, times[i]);
        struct buf text = { 0 };
        buf_print(&text, "{\"vocabulary\":%d,\"filter\":", (int)vocabulary);
        json_tree_write(words, &text);
        buf_add_char(&text, '}');
        action->selection = buf_to_bytes(&text);
        buf_finish(&text);
    }
    filter_words_close(read);
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
    json_t *selection = json_tree_read(text, 0, NULL);
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
