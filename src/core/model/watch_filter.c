/* watch_filter.c - copies of filters: first the arrays of slices, behind them their texts, in one
 * piece of memory. Lists are sorted and without repetitions, so that the key is one for all who
 * mean the same. */
#include "core/model/watch_filter.h"

#include <inttypes.h>

#include "base/buf.h"
#include "base/mem.h"

/* Where the copy goes on. */
struct watch_filter_room {
    struct slice *slices;
    char *text;
};

static int by_text(const void *a, const void *b)
{
    return slice_compare(*(const struct slice *)a, *(const struct slice *)b);
}

static struct slice copy_text(struct watch_filter_room *room, struct slice text)
{
    if (!text.ptr)
        return text;
    char *to = room->text;
    memcpy(to, text.ptr, text.len);
    room->text += text.len;
    return (struct slice){ to, text.len };
}

static void copy_list(struct watch_filter_room *room, struct slice **list, size_t *count)
{
    const struct slice *from = *list;
    struct slice *to = room->slices;
    size_t kept = 0, all = *count;
    for (size_t i = 0; i < all; i++)
        to[i] = copy_text(room, from[i]);
    qsort(to, all, sizeof(*to), by_text);
    for (size_t i = 0; i < all; i++)
        if (!kept || by_text(&to[kept - 1], &to[i]))
            to[kept++] = to[i];
    room->slices += all;
    *list = all ? to : NULL;
    *count = kept;
}

static void add_texts(struct buf *key, const struct slice *texts, size_t count)
{
    buf_print(key, "%zu[", count);
    for (size_t i = 0; i < count; i++) {
        buf_print(key, "%zu:", texts[i].ptr ? texts[i].len + 1 : 0);
        buf_add(key, texts[i]);
    }
    buf_add_char(key, ']');
}

static struct bytes *make_key(const struct watch_filter *filter)
{
    const struct run_filter *f = &filter->run;
    const struct slice texts[] = { f->batch, f->schedule, f->bulk, f->parent };
    struct buf key = { 0 };
    buf_print(&key, "%x %x %d %d %d ", f->statuses, f->machines, f->is_test, f->every_tag,
              f->nothing);
    buf_print(&key, "%" PRId64 " %" PRId64 " %" PRId64 " ", filter->period_ms,
              filter->period_ms ? 0 : f->created_from, f->created_to);
    add_texts(&key, f->tasks, f->task_count);
    add_texts(&key, f->versions, f->version_count);
    add_texts(&key, f->tags, f->tag_count);
    add_texts(&key, f->queues, f->queue_count);
    add_texts(&key, f->regions, f->region_count);
    add_texts(&key, texts, sizeof(texts) / sizeof(texts[0]));
    struct bytes *made = buf_to_bytes(&key);
    buf_finish(&key);
    return made;
}

static size_t text_bytes(const struct slice *texts, size_t count)
{
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += texts[i].len;
    return bytes;
}

struct watch_filter *watch_filter_create(const struct run_filter *run, int64_t period_ms)
{
    const struct slice texts[] = { run->batch, run->schedule, run->bulk, run->parent };
    size_t slices = run->task_count + run->version_count + run->tag_count +
                    run->queue_count + run->region_count;
    size_t bytes = text_bytes(run->tasks, run->task_count) +
                   text_bytes(run->versions, run->version_count) +
                   text_bytes(run->tags, run->tag_count) +
                   text_bytes(run->queues, run->queue_count) +
                   text_bytes(run->regions, run->region_count) +
                   text_bytes(texts, sizeof(texts) / sizeof(texts[0]));
    size_t extra = slices * sizeof(struct slice) + bytes;
    struct watch_filter *filter = mem_new_flex(struct watch_filter, extra);
    struct watch_filter_room room = { .slices = (struct slice *)(filter + 1) };
    room.text = (char *)(room.slices + slices);

    filter->refs = 1;
    filter->run = *run;
    filter->period_ms = period_ms;
    copy_list(&room, &filter->run.tasks, &filter->run.task_count);
    copy_list(&room, &filter->run.versions, &filter->run.version_count);
    copy_list(&room, &filter->run.tags, &filter->run.tag_count);
    copy_list(&room, &filter->run.queues, &filter->run.queue_count);
    copy_list(&room, &filter->run.regions, &filter->run.region_count);
    filter->run.batch = copy_text(&room, run->batch);
    filter->run.schedule = copy_text(&room, run->schedule);
    filter->run.bulk = copy_text(&room, run->bulk);
    filter->run.parent = copy_text(&room, run->parent);
    filter->key = make_key(filter);
    filter->size = sizeof(*filter) + extra + filter->key->len;
    return filter;
}

struct watch_cost watch_filter_cost(const struct watch_filter *filter)
{
    const struct run_filter *f = &filter->run;
    size_t values =
        f->task_count + f->version_count + f->tag_count + f->queue_count + f->region_count;
    size_t shares = (values + WATCH_FILTER_VALUES - 1) / WATCH_FILTER_VALUES;
    return (struct watch_cost){ .values = values, .filters = shares ? shares : 1 };
}

struct watch_filter *watch_filter_ref(struct watch_filter *filter)
{
    filter->refs++;
    return filter;
}

void watch_filter_unref(struct watch_filter *filter)
{
    if (!filter || --filter->refs)
        return;
    bytes_unref(filter->key);
    free(filter);
}
