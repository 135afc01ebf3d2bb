/* filter.c - does a run match? Asked for every change and every listener, so the cheap tests
 * come first. */
#include "core/wire/filter.h"

#include <stdlib.h>

#include "base/mem.h"

static bool same(const struct bytes *a, const struct bytes *b)
{
    return a == b || (a && b && a->len == b->len && memcmp(a->data, b->data, a->len) == 0);
}

static bool has_tag(const struct tag_list *tags, const struct bytes *tag)
{
    for (uint32_t i = 0; i < tags->count; i++)
        if (same(tags->names[i], tag))
            return true;
    return false;
}

static bool has_all_tags(const struct filter *filter, const struct tag_list *tags)
{
    if (!tags)
        return filter->tag_count == 0;
    struct bytes *const *wanted = filter_tags(filter);
    for (uint32_t i = 0; i < filter->tag_count; i++)
        if (!has_tag(tags, wanted[i]))
            return false;
    return true;
}

static bool has_task(const struct narrowing *narrowing, const struct bytes *task)
{
    for (uint32_t i = 0; i < narrowing->task_count; i++)
        if (same(narrowing->tasks[i], task))
            return true;
    return narrowing->task_count == 0;
}

static bool is_inside(const struct narrowing *narrowing, const struct facts *facts)
{
    return facts->created_at >= narrowing->created_from && has_task(narrowing, facts->task);
}

static bool has_topic(const struct filter *filter, const struct facts *facts)
{
    switch (filter->kind) {
    case TOPIC_ALL: return true;
    case TOPIC_TAG: return has_all_tags(filter, facts->tags);
    case TOPIC_BATCH: return same(filter->name, facts->batch);
    case TOPIC_RUN: return slice_is(bytes_slice(filter->name), facts->id);
    }
    return false;
}

bool filter_matches(const struct filter *filter, const struct facts *facts)
{
    return has_topic(filter, facts) &&
           (!filter->narrowing || is_inside(filter->narrowing, facts));
}

static size_t list_size(struct bytes *const *list, uint32_t count)
{
    size_t size = 0;
    for (uint32_t i = 0; i < count; i++)
        size += sizeof(struct bytes *) + sizeof(struct bytes) + list[i]->len;
    return size;
}

size_t filter_size(const struct filter *filter)
{
    struct narrowing narrowing = filter_narrowing(filter);
    return list_size(filter_tags(filter), filter->tag_count) +
           list_size(narrowing.tasks, narrowing.task_count);
}

static void finish_list(struct bytes **list, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        bytes_unref(list[i]);
    free(list);
}

void filter_set_tags(struct filter *filter, struct bytes **names, uint16_t count)
{
    filter->tag_count = count;
    if (count > 1) {
        filter->tags = names;
        return;
    }
    filter->name = count ? names[0] : NULL;
    free(names);
}

static struct narrowing *narrowing_of(struct filter *filter)
{
    if (!filter->narrowing)
        filter->narrowing = mem_new(struct narrowing);
    return filter->narrowing;
}

void filter_set_tasks(struct filter *filter, struct bytes **names, uint16_t count)
{
    if (!count) {
        free(names);
        return;
    }
    narrowing_of(filter)->tasks = names;
    narrowing_of(filter)->task_count = count;
}

void filter_set_created_from(struct filter *filter, int64_t unix_ms)
{
    if (unix_ms || filter->narrowing)
        narrowing_of(filter)->created_from = unix_ms;
}

void filter_finish(struct filter *filter)
{
    if (filter->tag_count > 1)
        finish_list(filter->tags, filter->tag_count);
    else
        bytes_unref(filter->name);
    if (filter->narrowing)
        finish_list(filter->narrowing->tasks, filter->narrowing->task_count);
    free(filter->narrowing);
    *filter = (struct filter){ 0 };
}
