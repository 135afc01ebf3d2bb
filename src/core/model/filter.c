/* filter.c - decides whether a run matches a subscription.
 *
 * This is checked for every change and every listener, so the cheap conditions come
 * first. */
#include "core/model/filter.h"

struct filter filter_create(struct slice run, const struct run_filter *wanted)
{
    struct filter filter = { .created_from = wanted->created_from };
    if (run.ptr || wanted->batch.ptr) {
        filter.kind = run.ptr ? TOPIC_RUN : TOPIC_BATCH;
        filter.name = bytes_create(run.ptr ? run : wanted->batch);
    } else if (wanted->tag_count) {
        filter.kind = TOPIC_TAG;
        filter.name = bytes_create_shared(wanted->tags[0]);
    }
    if (wanted->tag_count > 1 || wanted->task_count)
        filter.query = query_create(wanted, 0);
    return filter;
}

static bool same(const struct bytes *a, const struct bytes *b)
{
    return a == b || (a && b && a->len == b->len && memcmp(a->data, b->data, a->len) == 0);
}

static bool has_tag(const struct tag_list *tags, const struct bytes *tag)
{
    for (uint32_t i = 0; tags && i < tags->count; i++)
        if (same(tags->names[i], tag))
            return true;
    return false;
}

static bool has_topic(const struct filter *filter, const struct facts *facts)
{
    switch (filter->kind) {
    case TOPIC_ALL: return true;
    case TOPIC_TAG: return has_tag(facts->tags, filter->name);
    case TOPIC_BATCH: return same(filter->name, facts->batch);
    case TOPIC_RUN: return slice_is(bytes_slice(filter->name), facts->id);
    default: return false;
    }
}

bool filter_matches(const struct filter *filter, const struct facts *facts)
{
    return has_topic(filter, facts) && facts->created_at >= filter->created_from &&
           (!filter->query || query_fits(filter->query, facts));
}

struct query *filter_to_query(const struct filter *filter)
{
    struct slice name = bytes_slice(filter->name);
    struct run_filter wanted = { .is_test = -1 };
    if (filter->query) {
        wanted = filter->query->filter;
    } else if (filter->kind == TOPIC_TAG) {
        wanted.tags = &name;
        wanted.tag_count = 1;
        wanted.every_tag = true;
    } else if (filter->kind == TOPIC_BATCH) {
        wanted.batch = name;
    }
    wanted.created_from = filter->created_from;
    return query_create(&wanted, 0);
}

size_t filter_size(const struct filter *filter)
{
    if (filter->query)
        return filter->query->size;
    return filter->kind == TOPIC_TAG ? sizeof(struct bytes) + filter->name->len : 0;
}

void filter_finish(struct filter *filter)
{
    bytes_unref(filter->name);
    query_unref(filter->query);
    *filter = (struct filter){ 0 };
}
