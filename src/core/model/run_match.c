/* run_match.c - a filter of a list, condition by condition; those that cost least come first,
 * since a live list asks it at every change. */
#include "core/model/run_match.h"

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

/* A value that is absent is no condition. */
static bool is_value(const struct bytes *text, struct slice value)
{
    return !value.ptr || is_text(text, value);
}

/* An empty value wants the runs that have no parent. */
static bool is_parent(const struct bytes *parent, struct slice value)
{
    return value.ptr && !value.len ? !parent : is_value(parent, value);
}

static bool has_tag(const struct run *run, struct slice tag)
{
    for (uint32_t i = 0; run->tags && i < run->tags->count; i++)
        if (is_text(run->tags->names[i], tag))
            return true;
    return false;
}

static bool has_every_tag(const struct run *run, const struct slice *tags, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!has_tag(run, tags[i]))
            return false;
    return true;
}

static bool has_any_tag(const struct run *run, const struct slice *tags, size_t count)
{
    for (uint32_t i = 0; run->tags && i < run->tags->count; i++)
        if (is_among(bytes_slice(run->tags->names[i]), tags, count))
            return true;
    return !count;
}

static bool has_tags(const struct run *run, const struct run_filter *f)
{
    return f->every_tag ? has_every_tag(run, f->tags, f->tag_count)
                        : has_any_tag(run, f->tags, f->tag_count);
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
           (f->is_test < 0 || run->is_test == (f->is_test != 0)) &&
           run->created_at >= f->created_from &&
           (!f->created_to || run->created_at <= f->created_to);
}

bool run_matches(const struct run *run, const struct run_filter *f)
{
    const struct run_rare *rare = run_rare(run);
    return has_kind(run, f) && is_any(run->task, f->tasks, f->task_count) &&
           is_any(run->worker_version, f->versions, f->version_count) &&
           is_any(run->queue, f->queues, f->queue_count) &&
           is_any(rare->region, f->regions, f->region_count) && has_tags(run, f) &&
           is_value(run->batch, f->batch) && is_value(rare->schedule, f->schedule) &&
           is_value(rare->bulk, f->bulk) && is_parent(rare->parent, f->parent) &&
           names_packet(run, f->packet);
}
