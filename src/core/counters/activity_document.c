/* activity_document.c - writes and reads the activity of an environment. */
#include "core/counters/activity_document.h"

#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "base/json/members.h"
#include "base/json/scan.h"

/* The characters of ids of runs. The ids are shown as they are stored. */
#define ID_CHARACTERS "0123456789_ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

enum {
    SAMPLE_NUMBERS = 7 + FIGURES_ENDS,
    SLOT_NUMBERS = 6 + 2 * OCTAVES_BUCKETS, /* at most */
};

/* ---- writing ---- */

static void add_numbers(struct buf *out, const int64_t *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        buf_print(out, "%s%" PRId64, i ? "," : "[", numbers[i]);
    buf_add_char(out, ']');
}

static void add_sample(struct buf *out, const struct stats_sample *sample)
{
    int64_t numbers[SAMPLE_NUMBERS] = {
        sample->at,         sample->triggers, sample->queued, sample->queued_since,
        sample->deliveries, sample->p50_us,   sample->p99_us,
    };
    for (size_t i = 0; i < FIGURES_ENDS; i++)
        numbers[7 + i] = sample->ends[i];
    add_numbers(out, numbers, SAMPLE_NUMBERS);
}

static void add_slot(struct buf *out, const struct task_slot *slot)
{
    int64_t numbers[SLOT_NUMBERS] = { slot->at,     slot->triggers, slot->completed,
                                      slot->failed, slot->canceled, slot->expired };
    size_t count = 6;
    for (size_t bucket = 0; bucket < OCTAVES_BUCKETS; bucket++)
        if (slot->durations[bucket]) {
            numbers[count++] = (int64_t)bucket;
            numbers[count++] = slot->durations[bucket];
        }
    add_numbers(out, numbers, count);
}

static void add_task(struct buf *out, const struct task_figures *task)
{
    buf_add_char(out, '{');
    members_add_text(out, "task", bytes_slice(task->task));
    members_add_number(out, "failedAt", task->failure.at);
    members_add_text(out, "failedRun", slice_of(task->failure.run));
    members_add_name(out, "slots");
    buf_add_char(out, '[');
    for (size_t i = 0; i < task->count; i++) {
        if (i)
            buf_add_char(out, ',');
        add_slot(out, &task->slots[i]);
    }
    buf_add_text(out, "]}");
}

void activity_document_write(const struct stats *stats, const struct task_table *tasks,
                             struct buf *out)
{
    buf_print(out, "{\"from\":%" PRId64 ",\"samples\":[", stats->from);
    for (size_t i = 0; i < stats->count; i++) {
        if (i)
            buf_add_char(out, ',');
        add_sample(out, stats_at(stats, i));
    }
    buf_add_text(out, "],\"tasks\":[");
    for (size_t i = 0; i < tasks->count; i++) {
        if (i)
            buf_add_char(out, ',');
        add_task(out, &tasks->tasks[i]);
    }
    buf_add_text(out, "]}");
}

/* ---- reading ---- */

/* Returns how many numbers the array has. Returns 0 for another value, and for an array
 * with too many numbers or a negative one. */
static size_t read_numbers(struct slice array, int64_t *numbers, size_t most)
{
    size_t count = 0;
    struct slice element;
    if (scan_type(array) != SCAN_ARRAY)
        return 0;
    for (struct scan_members all = scan_members(array); scan_next_element(&all, &element);)
        if (count == most || text_to_i64(element, &numbers[count]) || numbers[count++] < 0)
            return 0;
    return count;
}

static uint32_t small(int64_t number)
{
    return number < UINT32_MAX ? (uint32_t)number : UINT32_MAX;
}

static bool read_sample(struct slice array, struct stats_sample *sample)
{
    int64_t numbers[SAMPLE_NUMBERS];
    if (read_numbers(array, numbers, SAMPLE_NUMBERS) != SAMPLE_NUMBERS)
        return false;
    *sample = (struct stats_sample){ .at = numbers[0],
                                     .triggers = small(numbers[1]),
                                     .queued = small(numbers[2]),
                                     .queued_since = numbers[3],
                                     .deliveries = small(numbers[4]),
                                     .p50_us = small(numbers[5]),
                                     .p99_us = small(numbers[6]) };
    for (size_t i = 0; i < FIGURES_ENDS; i++)
        sample->ends[i] = small(numbers[7 + i]);
    return true;
}

static bool read_slot(struct slice array, struct task_slot *slot)
{
    int64_t numbers[SLOT_NUMBERS];
    size_t count = read_numbers(array, numbers, SLOT_NUMBERS);
    if (count < 6 || count % 2)
        return false;
    *slot = (struct task_slot){ .at = numbers[0],
                                .triggers = small(numbers[1]),
                                .completed = small(numbers[2]),
                                .failed = small(numbers[3]),
                                .canceled = small(numbers[4]),
                                .expired = small(numbers[5]) };
    for (size_t i = 6; i < count; i += 2) {
        if (numbers[i] >= OCTAVES_BUCKETS)
            return false;
        slot->durations[numbers[i]] = small(numbers[i + 1]);
    }
    return true;
}

static bool read_samples(struct slice samples, int64_t now_ms, struct stats *stats)
{
    struct slice element;
    struct stats_sample sample;
    if (scan_type(samples) != SCAN_ARRAY)
        return false;
    for (struct scan_members all = scan_members(samples);
         scan_next_element(&all, &element);) {
        if (!read_sample(element, &sample))
            return false;
        stats_restore(stats, &sample, now_ms);
    }
    return true;
}

static bool read_task(struct slice object, int64_t now_ms, struct task_table *tasks)
{
    struct slice slots, element;
    struct task_slot slot;
    struct task_failure failure = { 0 };
    if (scan_type(object) != SCAN_OBJECT)
        return false;
    struct bytes *name = members_text(object, "task");
    struct bytes *run = members_text(object, "failedRun");
    bool right = name && run && run->len < sizeof(failure.run) &&
                 strspn(run->data, ID_CHARACTERS) == run->len &&
                 members_number(object, "failedAt", &failure.at) && failure.at >= 0;
    if (right)
        memcpy(failure.run, run->data, run->len + 1);
    slots = scan_member(object, "slots");
    right = right && scan_type(slots) == SCAN_ARRAY;
    for (struct scan_members all = scan_members(slots);
         right && scan_next_element(&all, &element);) {
        right = read_slot(element, &slot);
        if (right)
            task_table_restore(tasks, name, &failure, &slot, now_ms);
    }
    bytes_unref(name);
    bytes_unref(run);
    return right;
}

static bool read_tasks(struct slice all, int64_t now_ms, struct task_table *tasks)
{
    struct slice element;
    if (scan_type(all) != SCAN_ARRAY)
        return false;
    for (struct scan_members each = scan_members(all); scan_next_element(&each, &element);)
        if (!read_task(element, now_ms, tasks))
            return false;
    return true;
}

enum err activity_document_read(struct slice text, int64_t now_ms, struct stats *stats,
                                struct task_table *tasks, struct failure *why)
{
    int64_t from = 0;
    if (!scan_is_json(text) || scan_type(text) != SCAN_OBJECT ||
        !members_number(text, "from", &from))
        return explain(why, ERR_INVALID, "activity: not an object with from");
    if (from > 0 && from < stats->from)
        stats->from = from;
    bool sampled = read_samples(scan_member(text, "samples"), now_ms, stats);
    if (!read_tasks(scan_member(text, "tasks"), now_ms, tasks))
        return explain(why, ERR_INVALID, "activity: tasks are damaged");
    return sampled ? OK : explain(why, ERR_INVALID, "activity: samples are damaged");
}
