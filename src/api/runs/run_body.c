/* run_body.c - writes the run objects of the management API, member by member. */
#include "api/runs/run_body.h"

#include "base/json/members.h"
#include "base/json/scan.h"
#include "core/wire/render.h"
#include "core/wire/run_error.h"

/* ---- members ---- */

static void add_cents(struct buf *out, const char *name, double cents)
{
    members_add_name(out, name);
    buf_add_json_double(out, cents);
}

/* Adds a packet. Removes the name again if there is no value. */
static void add_packet(struct buf *out, const char *name, struct bytes *content,
                       const struct bytes *type)
{
    size_t before = out->len;
    members_add_name(out, name);
    if (!render_packet(content, bytes_slice(type), out))
        out->len = before;
}

/* ---- tags ---- */

/* Returns the rank of a character in the order of localeCompare: case counts last, then
 * punctuation, digits, letters, and everything beyond ASCII. */
static int weight(char c)
{
    static const char signs[] = "\t\n\r _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$0123456789";
    const char *sign = c ? strchr(signs, c) : NULL;
    if (sign)
        return (int)(sign - signs);
    if (c >= 'A' && c <= 'Z')
        return 128 + c - 'A';
    if (c >= 'a' && c <= 'z')
        return 128 + c - 'a';
    return 256 + (unsigned char)c;
}

static int compare_tags(struct slice a, struct slice b)
{
    size_t shorter = a.len < b.len ? a.len : b.len;
    for (size_t i = 0; i < shorter; i++) {
        int difference = weight(a.ptr[i]) - weight(b.ptr[i]);
        if (difference)
            return difference;
    }
    if (a.len != b.len)
        return a.len < b.len ? -1 : 1;
    return -memcmp(a.ptr, b.ptr, shorter); /* lower case first */
}

static void add_tags(struct buf *out, const struct tag_list *tags)
{
    struct slice sorted[RUN_TAGS_MAX];
    size_t count = 0;
    for (uint32_t i = 0; tags && i < tags->count && i < RUN_TAGS_MAX; i++) {
        struct slice tag = bytes_slice(tags->names[i]);
        size_t at = count++;
        for (; at > 0 && compare_tags(sorted[at - 1], tag) > 0; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = tag;
    }
    members_add_name(out, "tags");
    buf_add_char(out, '[');
    for (size_t i = 0; i < count; i++) {
        if (i)
            buf_add_char(out, ',');
        buf_add_json(out, sorted[i]);
    }
    buf_add_char(out, ']');
}

/* ---- members of every form ---- */

/* Adds flags that follow from the client's word for the status. A run that expired or
 * timed out is completed too: otherwise polling for it would never end. */
static void add_flags(struct buf *out, const struct run *run, enum vocabulary vocabulary)
{
    bool final = run_is_final(run);
    bool waiting = run->status == RUN_WAITING && vocabulary == VOCABULARY_B;
    members_add_bool(out, "isQueued", run->status <= RUN_QUEUED);
    members_add_bool(out, "isExecuting", run->status > RUN_QUEUED && !final && !waiting);
    members_add_bool(out, "isWaiting", waiting);
    members_add_bool(out, "isCompleted", final);
    members_add_bool(out, "isSuccess", run->status == RUN_COMPLETED);
    members_add_bool(out, "isFailed", final && run->status != RUN_COMPLETED);
    members_add_bool(out, "isCancelled", run->status == RUN_CANCELED);
    members_add_bool(out, "isTest", run->is_test);
}

static void add_times(struct buf *out, const struct run *run)
{
    bool undated_end = run_is_final(run) && !run->finished_at;
    members_add_time(out, "createdAt", run->created_at);
    members_add_time(out, "updatedAt", run->updated_at);
    members_add_time(out, "queuedAt", run->queued_at);
    members_add_time(out, "startedAt", run->started_at);
    members_add_time(out, "finishedAt", undated_end ? run->updated_at : run->finished_at);
    members_add_time(out, "delayedUntil", run_rare(run)->delayed_until);
    members_add_time(out, "expiredAt", run_rare(run)->expired_at);
}

static bool has_metadata(const struct run *run)
{
    return run->metadata && scan_type(bytes_slice(run->metadata)) == SCAN_OBJECT;
}

struct slice run_body_metadata(const struct run *run)
{
    return has_metadata(run) ? bytes_slice(run->metadata) : SLICE("{}");
}

/* Opens the object, which stays open. */
static void add_common(struct buf *out, const struct run *run, enum vocabulary vocabulary)
{
    enum run_status status = (enum run_status)run->status;
    const struct run_rare *rare = run_rare(run);
    buf_print(out, "{\"id\":\"%s\",\"status\":\"%s\"", run->id,
              run_status_name(status, vocabulary));
    members_add_text(out, "taskIdentifier", bytes_slice(run->task));
    if (run->number)
        members_add_number(out, "number", run->number);
    members_add_text(out, "idempotencyKey", bytes_slice(rare->idempotency_shown));
    members_add_text(out, "version", bytes_slice(run->worker_version));
    members_add_text(out, "queue", bytes_slice(run->queue));
    members_add_text(out, "region", bytes_slice(rare->region));
    members_add_text(out, "ttl", bytes_slice(rare->ttl));
    add_times(out, run);
    add_flags(out, run, vocabulary);
    add_tags(out, run->tags);
    add_cents(out, "costInCents", run->cost_cents);
    add_cents(out, "baseCostInCents", run->base_cost_cents);
    members_add_number(out, "durationMs", run->usage_ms);
    members_add_number(out, "depth", run->depth);
    if (has_metadata(run))
        members_add_json_bytes(out, "metadata", run->metadata);
}

/* Adds the names of limits, or the gates: elements of this type, as an array. Adds nothing if
 * it is not decided which ones the run has (core/fleet/versions.h). */
static void add_needs(struct buf *out, const char *member, struct slice text,
                      enum scan_type type, void add(struct buf *out, struct slice element))
{
    struct scan_members elements = scan_members(text);
    struct buf array = { 0 };
    struct slice element;
    bool is_decided = text.ptr && type == SCAN_STRING;
    buf_add_char(&array, '[');
    while (scan_next_element(&elements, &element)) {
        bool is_empty = element.len <= sizeof("{}") - 1;
        is_decided &= scan_type(element) != SCAN_NULL;
        if (scan_type(element) != type)
            continue;
        is_decided = true;
        buf_add_text(&array, array.len > 1 && !is_empty ? "," : "");
        if (!is_empty)
            add(&array, element);
    }
    buf_add_char(&array, ']');
    if (is_decided)
        members_add_json(out, member, buf_slice(&array));
    buf_finish(&array);
}

static void add_gate(struct buf *out, struct slice gate)
{
    struct slice pin = scan_member(gate, "pin");
    struct slice key = pin.ptr ? pin : scan_member(gate, "key");
    buf_add_text(out, "{\"queue\":");
    buf_add(out, scan_member(gate, "queue"));
    if (key.ptr) {
        buf_add_text(out, ",\"concurrencyKey\":");
        buf_add(out, key);
    }
    buf_add_char(out, '}');
}

static void add_limits(struct buf *out, const struct run_rare *rare)
{
    members_add_text(out, "concurrencyKey", bytes_slice(rare->concurrency_key));
    add_needs(out, "concurrencyLimits", bytes_slice(rare->limits), SCAN_STRING, buf_add);
    add_needs(out, "gates", bytes_slice(rare->limits), SCAN_OBJECT, add_gate);
}

static void add_origin(struct buf *out, const struct run *run)
{
    static const char *const functions[2][2] = {
        { "trigger", "triggerAndWait" },
        { "batchTrigger", "batchTriggerAndWait" },
    };
    members_add_text(out, "triggerFunction",
                     slice_of(functions[run->from_batch][run->resume_parent]));
    members_add_text(out, "batchId", bytes_slice(run->batch));
}

/* ---- in lists ---- */

void run_body_item(const struct run *run, enum vocabulary vocabulary,
                   const struct run_place *place, struct buf *out)
{
    add_common(out, run, vocabulary);
    members_add_text(out, "batchId", bytes_slice(run->batch));
    members_add_number(out, "attemptCount", run->attempt);
    buf_add_text(out, ",\"taskKind\":\"STANDARD\",\"env\":{\"id\":");
    buf_add_json(out, place->id);
    members_add_text(out, "name", place->slug);
    members_add_text(out, "user", place->user);
    buf_add_text(out, "}}");
}

/* ---- whole ---- */

static void add_relative(struct buf *out, const struct run *run, enum vocabulary vocabulary)
{
    add_common(out, run, vocabulary);
    add_origin(out, run);
    buf_add_char(out, '}');
}

static void add_relatives(struct buf *out, const struct run_details *details,
                          enum vocabulary vocabulary)
{
    buf_add_text(out, ",\"relatedRuns\":{");
    if (details->root) {
        buf_add_text(out, "\"root\":");
        add_relative(out, details->root, vocabulary);
        buf_add_char(out, ',');
    }
    if (details->parent) {
        buf_add_text(out, "\"parent\":");
        add_relative(out, details->parent, vocabulary);
        buf_add_char(out, ',');
    }
    buf_add_text(out, "\"children\":[");
    for (size_t i = 0; i < details->child_count; i++) {
        if (i)
            buf_add_char(out, ',');
        add_relative(out, &details->children[i], vocabulary);
    }
    buf_add_text(out, "]}");
}

void run_body_whole(const struct run *run, enum vocabulary vocabulary,
                    const struct run_details *details, struct buf *out)
{
    add_common(out, run, vocabulary);
    add_origin(out, run);
    if (run->max_duration_s)
        members_add_number(out, "maxDurationSeconds", run->max_duration_s);
    if (details->schedule.len)
        members_add_json(out, "schedule", details->schedule);
    if (details->waiting.len)
        members_add_json(out, "waitingFor", details->waiting);
    if (!details->hides_limits)
        add_limits(out, run_rare(run));
    add_packet(out, "payload", run->payload, run_rare(run)->payload_type);
    members_add_text(out, "payloadPresignedUrl", details->payload_url);
    if (run->status == RUN_COMPLETED) {
        add_packet(out, "output", run->output, run_rare(run)->output_type);
        members_add_text(out, "outputPresignedUrl", details->output_url);
    }
    if (run->error) {
        members_add_name(out, "error");
        run_error_render(run->error, out);
    }
    members_add_number(out, "attemptCount", run->attempt);
    buf_add_text(out, ",\"attempts\":[]");
    add_relatives(out, details, vocabulary);
    buf_add_char(out, '}');
}

/* ---- the result ---- */

/* Returns an error code that both SDKs know. */
static const char *code_of(const struct run *run)
{
    switch (run->status) {
    case RUN_CANCELED: return "TASK_RUN_CANCELLED";
    case RUN_TIMED_OUT: return "MAX_DURATION_EXCEEDED";
    case RUN_CRASHED: return "TASK_RUN_CRASHED";
    default: return "TASK_EXECUTION_FAILED";
    }
}

/* Both SDKs recognize a cancel by its code, so the stored text is not used for it. */
static void add_error(struct buf *out, const struct run *run)
{
    struct slice error = bytes_slice(run->error);
    members_add_name(out, "error");
    if (run->status != RUN_CANCELED && scan_type(error) == SCAN_OBJECT)
        rope_add(out, run->error, error);
    else
        buf_print(out, "{\"type\":\"INTERNAL_ERROR\",\"code\":\"%s\"}", code_of(run));
}

/* Opens the object, which stays open. */
static void begin_result(struct buf *out, const struct run *run)
{
    bool ok = run->status == RUN_COMPLETED;
    buf_print(out, "{\"ok\":%s,\"id\":\"%s\"", ok ? "true" : "false", run->id);
    members_add_text(out, "taskIdentifier", bytes_slice(run->task));
    if (!ok)
        add_error(out, run);
}

static void end_result(struct buf *out, const struct run *run)
{
    const struct bytes *type = run_rare(run)->output_type;
    if (run->status == RUN_COMPLETED)
        members_add_text(out, "outputType",
                         type ? bytes_slice(type) : SLICE("application/json"));
    buf_add_char(out, '}');
}

void run_body_result(const struct run *run, struct buf *out)
{
    begin_result(out, run);
    if (run->status == RUN_COMPLETED)
        members_add_bytes(out, "output", run->output);
    end_result(out, run);
}

void run_body_result_value(const struct run *run, struct slice url, struct buf *out)
{
    begin_result(out, run);
    if (run->status == RUN_COMPLETED) {
        add_packet(out, "output", run->output, run_rare(run)->output_type);
        members_add_text(out, "outputPresignedUrl", url);
    }
    end_result(out, run);
}
