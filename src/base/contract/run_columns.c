/* run_columns.c - the table of a run's columns, and fields that are encoded as one value. */
#include "base/contract/run_columns.h"

#include "base/text.h"

#define OF_RUN(field) offsetof(struct run, field)

const struct run_column run_columns[RUN_COLUMN_COUNT] = {
    { "number", COLUMN_U32, COLUMN_FIXED, OF_RUN(number) },
    { "version", COLUMN_U32, COLUMN_CHANGES, OF_RUN(version) },
    { "snapshot", COLUMN_U32, COLUMN_CHANGES, OF_RUN(snapshot) },
    { "rev", COLUMN_U64, COLUMN_CHANGES, OF_RUN(rev) },
    { "whole_rev", COLUMN_U64, COLUMN_CHANGES, OF_RUN(whole_rev) },
    { "metadata_rev", COLUMN_U64, COLUMN_CHANGES, OF_RUN(metadata_rev) },
    { "output_rev", COLUMN_U64, COLUMN_CHANGES, OF_RUN(output_rev) },
    { "status", COLUMN_U8, COLUMN_CHANGES, OF_RUN(status) },
    { "execution", COLUMN_U8, COLUMN_CHANGES, OF_RUN(execution) },
    { "machine", COLUMN_U8, COLUMN_CHANGES, OF_RUN(machine) },
    { "flags", COLUMN_FLAGS, COLUMN_CHANGES, 0 },
    { "attempt", COLUMN_U16, COLUMN_CHANGES, OF_RUN(attempt) },
    { "depth", COLUMN_U16, COLUMN_FIXED, OF_RUN(depth) },
    { "max_attempts", COLUMN_U16, COLUMN_CHANGES, OF_RUN(max_attempts) },
    { "dequeue_failures", COLUMN_U16, COLUMN_CHANGES, OF_RUN(dequeue_failures) },
    { "batch_index", COLUMN_U32, COLUMN_FIXED, OF_RUN(batch_index) },
    { "priority_ms", COLUMN_I32, COLUMN_CHANGES, rare_offset(priority_ms) },
    { "max_duration_s", COLUMN_U32, COLUMN_CHANGES, OF_RUN(max_duration_s) },
    { "usage_ms", COLUMN_U32, COLUMN_CHANGES, OF_RUN(usage_ms) },
    { "created_at", COLUMN_I64, COLUMN_FIXED, OF_RUN(created_at) },
    { "updated_at", COLUMN_I64, COLUMN_CHANGES, OF_RUN(updated_at) },
    { "queued_at", COLUMN_I64, COLUMN_CHANGES, OF_RUN(queued_at) },
    { "started_at", COLUMN_I64, COLUMN_CHANGES, OF_RUN(started_at) },
    { "attempt_at", COLUMN_I64, COLUMN_CHANGES, OF_RUN(attempt_at) },
    { "finished_at", COLUMN_I64, COLUMN_CHANGES, OF_RUN(finished_at) },
    { "delayed_until", COLUMN_I64, COLUMN_CHANGES, rare_offset(delayed_until) },
    { "expired_at", COLUMN_I64, COLUMN_CHANGES, rare_offset(expired_at) },
    { "queue_position", COLUMN_I64, COLUMN_CHANGES, OF_RUN(queue_position) },
    { "due_at", COLUMN_I64, COLUMN_CHANGES, OF_RUN(due_at) },
    { "cost_cents", COLUMN_REAL, COLUMN_CHANGES, OF_RUN(cost_cents) },
    { "base_cost_cents", COLUMN_REAL, COLUMN_CHANGES, OF_RUN(base_cost_cents) },
    { "task", COLUMN_TEXT, COLUMN_FIXED, OF_RUN(task) },
    { "queue", COLUMN_TEXT, COLUMN_CHANGES, OF_RUN(queue) },
    { "concurrency_key", COLUMN_TEXT, COLUMN_CHANGES, rare_offset(concurrency_key) },
    { "worker_version", COLUMN_TEXT, COLUMN_CHANGES, OF_RUN(worker_version) },
    { "ttl", COLUMN_TEXT, COLUMN_CHANGES, rare_offset(ttl) },
    { "region", COLUMN_TEXT, COLUMN_CHANGES, rare_offset(region) },
    { "batch", COLUMN_TEXT, COLUMN_FIXED, OF_RUN(batch) },
    { "parent", COLUMN_TEXT, COLUMN_FIXED, rare_offset(parent) },
    { "root", COLUMN_TEXT, COLUMN_FIXED, rare_offset(root) },
    { "schedule", COLUMN_TEXT, COLUMN_FIXED, rare_offset(schedule) },
    { "idempotency_key", COLUMN_TEXT, COLUMN_CHANGES, rare_offset(idempotency_key) },
    { "idempotency_shown", COLUMN_TEXT, COLUMN_CHANGES, rare_offset(idempotency_shown) },
    { "worker_request", COLUMN_TEXT, COLUMN_CHANGES, OF_RUN(worker_request) },
    { "waits", COLUMN_TEXT, COLUMN_CHANGES, rare_offset(waits) },
    { "streams", COLUMN_TEXT, COLUMN_CHANGES, rare_offset(streams) },
    { "metadata_request", COLUMN_TEXT, COLUMN_CHANGES, rare_offset(metadata_request) },
    { "bulk", COLUMN_TEXT, COLUMN_CHANGES, rare_offset(bulk) },
    { "external_deployment", COLUMN_TEXT, COLUMN_FIXED, rare_offset(external_deployment) },
    { "limits", COLUMN_TEXT, COLUMN_CHANGES, rare_offset(limits) },
};

void *run_column_place(const struct run_column *column, struct run *run, bool is_set)
{
    if (column->offset < sizeof(struct run))
        return (char *)run + column->offset;
    if (!is_set)
        return NULL;
    return (char *)run_rare_edit(run) + (column->offset - sizeof(struct run));
}

int run_flags(const struct run *run)
{
    return run->is_test << 0 | run->is_replay << 1 | run->resume_parent << 2 |
           run->from_batch << 3 | run->key_from_user << 4 | run->by_token << 5;
}

void run_set_flags(struct run *run, int flags)
{
    run->is_test = flags >> 0 & 1;
    run->is_replay = flags >> 1 & 1;
    run->resume_parent = flags >> 2 & 1;
    run->from_batch = flags >> 3 & 1;
    run->key_from_user = flags >> 4 & 1;
    run->by_token = flags >> 5 & 1;
}

void run_tags_add(struct buf *out, const struct tag_list *tags)
{
    for (uint32_t i = 0; tags && i < tags->count; i++) {
        buf_print(out, "%u:", tags->names[i]->len);
        buf_add(out, bytes_slice(tags->names[i]));
        buf_add_char(out, ',');
    }
}

bool run_tags_next(struct slice *text, struct slice *tag)
{
    struct slice length;
    uint64_t len;
    if (!text->len || !slice_split(text, ':', &length) || text_to_u64(length, &len) ||
        len >= text->len)
        return false;
    *tag = (struct slice){ text->ptr, (size_t)len };
    *text = slice_from(*text, (size_t)len + 1);
    return true;
}

struct tag_list *run_tags_read(struct slice text)
{
    struct slice names[RUN_TAGS_MAX * 2];
    size_t count = 0;
    while (count < RUN_TAGS_MAX * 2 && run_tags_next(&text, &names[count]))
        count++;
    return tag_list_create(names, count);
}
