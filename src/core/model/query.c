/* query.c - copies filters of lists, and matches runs with them.
 *
 * A copy is one piece of memory: the query, the arrays of slices, then their texts. Lists
 * are sorted and without duplicates, so that all equivalent queries have the same key. */
#include "core/model/query.h"

#include <inttypes.h>

#include "base/buf.h"
#include "base/mem.h"

enum { LISTS = 5, TEXTS = 5 };

/* Pointers to all the values of a filter. */
struct filter_values {
    struct slice **lists[LISTS];
    size_t *counts[LISTS];
    struct slice *texts[TEXTS];
};

static struct filter_values values_of(struct run_filter *f)
{
    return (struct filter_values){
        { &f->tasks, &f->versions, &f->tags, &f->queues, &f->regions },
        { &f->task_count, &f->version_count, &f->tag_count, &f->queue_count,
          &f->region_count },
        { &f->batch, &f->schedule, &f->bulk, &f->parent, &f->packet },
    };
}

static size_t count_values(const struct run_filter *f)
{
    return f->task_count + f->version_count + f->tag_count + f->queue_count +
           f->region_count;
}

static size_t count_bytes(const struct filter_values *values)
{
    size_t bytes = 0;
    for (int i = 0; i < TEXTS; i++)
        bytes += values->texts[i]->len;
    for (int i = 0; i < LISTS; i++)
        for (size_t k = 0; k < *values->counts[i]; k++)
            bytes += (*values->lists[i])[k].len;
    return bytes;
}

/* ---- copies ---- */

/* Where the next values are copied to. */
struct query_arena {
    struct slice *slices;
    char *text;
};

static int by_text(const void *a, const void *b)
{
    return slice_compare(*(const struct slice *)a, *(const struct slice *)b);
}

static struct slice copy_text(struct query_arena *arena, struct slice text)
{
    if (!text.ptr)
        return text;
    char *to = arena->text;
    memcpy(to, text.ptr, text.len);
    arena->text += text.len;
    return (struct slice){ to, text.len };
}

static void copy_list(struct query_arena *arena, struct slice **list, size_t *count)
{
    const struct slice *from = *list;
    struct slice *to = arena->slices;
    size_t kept = 0, all = *count;
    for (size_t i = 0; i < all; i++)
        to[i] = copy_text(arena, from[i]);
    qsort(to, all, sizeof(*to), by_text);
    for (size_t i = 0; i < all; i++)
        if (!kept || by_text(&to[kept - 1], &to[i]))
            to[kept++] = to[i];
    arena->slices += all;
    *list = all ? to : NULL;
    *count = kept;
}

struct query *query_create(const struct run_filter *filter, int64_t period_ms)
{
    struct run_filter copy = *filter;
    struct filter_values values = values_of(&copy);
    size_t slices = count_values(&copy);
    size_t extra = slices * sizeof(struct slice) + count_bytes(&values);
    struct query *query = mem_new_flex(struct query, extra);
    struct query_arena arena = { .slices = (struct slice *)(query + 1) };
    arena.text = (char *)(arena.slices + slices);

    for (int i = 0; i < LISTS; i++)
        copy_list(&arena, values.lists[i], values.counts[i]);
    for (int i = 0; i < TEXTS; i++)
        *values.texts[i] = copy_text(&arena, *values.texts[i]);
    *query =
        (struct query){ .refs = 1, .filter = copy, .period_ms = period_ms, .size = extra };
    return query;
}

struct query *query_ref(struct query *query)
{
    if (query)
        query->refs++;
    return query;
}

void query_unref(struct query *query)
{
    if (!query || --query->refs > 0)
        return;
    bytes_unref(query->key);
    free(query);
}

/* ---- the key ---- */

static void add_text(struct buf *key, struct slice text)
{
    buf_print(key, "%zu:", text.ptr ? text.len + 1 : 0);
    buf_add(key, text);
}

static struct bytes *make_key(struct query *query)
{
    const struct run_filter *f = &query->filter;
    struct filter_values values = values_of(&query->filter);
    struct buf key = { 0 };
    buf_print(&key, "%x %x %d %d %d ", f->statuses, f->machines, f->is_test, f->every_tag,
              f->nothing);
    buf_print(&key, "%" PRId64 " %" PRId64 " %" PRId64 " ", query->period_ms,
              query->period_ms ? 0 : f->created_from, f->created_to);
    for (int i = 0; i < LISTS; i++) {
        buf_print(&key, "%zu[", *values.counts[i]);
        for (size_t k = 0; k < *values.counts[i]; k++)
            add_text(&key, (*values.lists[i])[k]);
    }
    for (int i = 0; i < TEXTS; i++)
        add_text(&key, *values.texts[i]);
    struct bytes *made = buf_to_bytes(&key);
    buf_finish(&key);
    return made;
}

struct slice query_key(struct query *query)
{
    if (!query->key)
        query->key = make_key(query);
    return bytes_slice(query->key);
}

size_t query_size(struct query *query)
{
    return sizeof(*query) + query->size + query_key(query).len;
}

struct query_cost query_cost(const struct query *query)
{
    size_t values = count_values(&query->filter);
    size_t shares = (values + QUERY_VALUES - 1) / QUERY_VALUES;
    return (struct query_cost){ .values = values, .queries = shares ? shares : 1 };
}

/* ---- matching; the cheapest conditions come first ---- */

static bool is_text(const struct bytes *text, struct slice value)
{
    return text && slice_equal(bytes_slice(text), value);
}

static bool is_among(struct slice text, const struct slice *values, size_t count)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = slice_compare(values[middle], text);
        if (!order)
            return true;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

static bool is_any(const struct bytes *text, const struct slice *values, size_t count)
{
    return !count || (text && is_among(bytes_slice(text), values, count));
}

/* An absent value matches everything. */
static bool is_value(const struct bytes *text, struct slice value)
{
    return !value.ptr || is_text(text, value);
}

/* An empty value matches runs without a parent. */
static bool is_parent(const struct bytes *parent, struct slice value)
{
    return value.ptr && !value.len ? !parent : is_value(parent, value);
}

static bool has_tag(const struct tag_list *tags, struct slice tag)
{
    for (uint32_t i = 0; tags && i < tags->count; i++)
        if (is_text(tags->names[i], tag))
            return true;
    return false;
}

static bool has_every_tag(const struct tag_list *tags, const struct run_filter *f)
{
    for (size_t i = 0; i < f->tag_count; i++)
        if (!has_tag(tags, f->tags[i]))
            return false;
    return true;
}

static bool has_any_tag(const struct tag_list *tags, const struct run_filter *f)
{
    for (uint32_t i = 0; tags && i < tags->count; i++)
        if (is_among(bytes_slice(tags->names[i]), f->tags, f->tag_count))
            return true;
    return !f->tag_count;
}

static bool is_packet(const struct bytes *content, const struct bytes *type,
                      struct slice name)
{
    return type && slice_is(bytes_slice(type), "application/store") &&
           is_text(content, name);
}

static bool names_packet(const struct run *run, struct slice name)
{
    const struct run_rare *rare = run_rare(run);
    return !name.ptr || is_packet(run->payload, rare->payload_type, name) ||
           is_packet(run->output, rare->output_type, name);
}

static bool has_kind(const struct run *run, const struct run_filter *f)
{
    return !f->nothing && (!f->statuses || f->statuses & 1u << run->status) &&
           (!f->machines || f->machines & 1u << run->machine) &&
           (f->is_test < 0 || run->is_test == (f->is_test != 0));
}

bool query_fits(const struct query *query, const struct facts *facts)
{
    const struct run_filter *f = &query->filter;
    return facts->created_at >= f->created_from &&
           (!f->created_to || facts->created_at <= f->created_to) &&
           is_any(facts->task, f->tasks, f->task_count) &&
           is_value(facts->batch, f->batch) &&
           (f->every_tag ? has_every_tag(facts->tags, f) : has_any_tag(facts->tags, f));
}

bool query_matches(const struct query *query, const struct run *run)
{
    const struct run_filter *f = &query->filter;
    const struct run_rare *rare = run_rare(run);
    struct facts facts = facts_of(run);
    return has_kind(run, f) && query_fits(query, &facts) &&
           is_any(run->worker_version, f->versions, f->version_count) &&
           is_any(run->queue, f->queues, f->queue_count) &&
           is_any(rare->region, f->regions, f->region_count) &&
           is_value(rare->schedule, f->schedule) && is_value(rare->bulk, f->bulk) &&
           is_parent(rare->parent, f->parent) && names_packet(run, f->packet);
}
