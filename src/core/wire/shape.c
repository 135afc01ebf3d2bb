/* shape.c - the columns of a run: their names, types and texts. */
#include "core/wire/shape.h"

#include "base/json/members.h"
#include "base/json/scan.h"

/* ---- the columns ---- */

enum skipping { SKIP_NEVER, SKIP_BY_NEW, SKIP };

/* Columns are in the order of the reference, with idempotencyKey last. SDK 3.x has no
 * default for five of them, so it cannot skip those. */
static const struct shape_column_type {
    const char *name;
    const char *schema;
    uint32_t bit; /* 1 << field, or COLUMN_… */
    enum skipping skipping;
} columns[] = {
    { "id", "{\"type\":\"text\"}", 1 << FIELD_ID, SKIP_NEVER },
    { "taskIdentifier", "{\"type\":\"text\"}", 1 << FIELD_TASK, SKIP_NEVER },
    { "createdAt", "{\"type\":\"timestamp\"}", 1 << FIELD_CREATED_AT, SKIP_NEVER },
    { "updatedAt", "{\"type\":\"timestamp\"}", 1 << FIELD_UPDATED_AT, SKIP_NEVER },
    { "startedAt", "{\"type\":\"timestamp\"}", 1 << FIELD_STARTED_AT, SKIP },
    { "delayUntil", "{\"type\":\"timestamp\"}", 1 << FIELD_DELAYED_UNTIL, SKIP },
    { "queuedAt", "{\"type\":\"timestamp\"}", 1 << FIELD_QUEUED_AT, SKIP },
    { "expiredAt", "{\"type\":\"timestamp\"}", 1 << FIELD_EXPIRED_AT, SKIP },
    { "completedAt", "{\"type\":\"timestamp\"}", 1 << FIELD_FINISHED_AT, SKIP },
    { "friendlyId", "{\"type\":\"text\"}", 1 << FIELD_ID, SKIP_NEVER },
    { "number", "{\"type\":\"int4\"}", 1 << FIELD_NUMBER, SKIP_BY_NEW },
    { "isTest", "{\"type\":\"bool\"}", 1 << FIELD_IS_TEST, SKIP_BY_NEW },
    { "status", "{\"type\":\"text\"}", 1 << FIELD_STATUS, SKIP_NEVER },
    { "usageDurationMs", "{\"type\":\"int4\"}", 1 << FIELD_DURATION_MS, SKIP_BY_NEW },
    { "costInCents", "{\"type\":\"float8\"}", 1 << FIELD_COST, SKIP_BY_NEW },
    { "baseCostInCents", "{\"type\":\"float8\"}", 1 << FIELD_BASE_COST, SKIP_BY_NEW },
    { "ttl", "{\"type\":\"text\"}", 1 << FIELD_TTL, SKIP },
    { "payload", "{\"type\":\"text\"}", 1 << FIELD_PAYLOAD, SKIP },
    { "payloadType", "{\"type\":\"text\"}", COLUMN_PAYLOAD_TYPE, SKIP },
    { "metadata", "{\"type\":\"text\"}", 1 << FIELD_METADATA, SKIP },
    { "metadataType", "{\"type\":\"text\"}", COLUMN_METADATA_TYPE, SKIP },
    { "output", "{\"type\":\"text\"}", 1 << FIELD_OUTPUT, SKIP },
    { "outputType", "{\"type\":\"text\"}", COLUMN_OUTPUT_TYPE, SKIP },
    { "runTags", "{\"type\":\"jsonb\"}", 1 << FIELD_TAGS, SKIP },
    { "error", "{\"type\":\"jsonb\"}", 1 << FIELD_ERROR, SKIP },
    { "realtimeStreams", "{\"type\":\"jsonb\"}", 1 << FIELD_STREAMS, SKIP },
    { "idempotencyKey", "{\"type\":\"text\"}", 1 << FIELD_IDEMPOTENCY_KEY, SKIP },
};

enum { COLUMN_COUNT = sizeof(columns) / sizeof(columns[0]) };

uint32_t shape_column(struct slice name, enum vocabulary vocabulary)
{
    enum field field = field_from_name(name);
    uint32_t bit = field < FIELD_COUNT ? 1u << field : 0;
    for (size_t i = 0; i < COLUMN_COUNT; i++)
        if (columns[i].bit == bit || slice_is(name, columns[i].name)) {
            bool may = columns[i].skipping == SKIP ||
                       (columns[i].skipping == SKIP_BY_NEW && vocabulary == VOCABULARY_B);
            return may ? columns[i].bit : 0;
        }
    return 0;
}

void shape_add_schema(uint32_t skipped, struct buf *out)
{
    char separator = '{';
    for (size_t i = 0; i < COLUMN_COUNT; i++) {
        if (columns[i].bit & skipped)
            continue;
        buf_print(out, "%c\"%s\":%s", separator, columns[i].name, columns[i].schema);
        separator = ',';
    }
    buf_add_char(out, '}');
}

/* ---- one row being written ---- */

struct writer {
    const struct view *view;
    const struct run *run;
    uint32_t wanted; /* bits of the columns to write */
    char separator;
    struct buf *out;
};

enum { SCRATCH_MOST = 1 << 20 };

/* The text of a column that holds JSON is built here first. */
static struct rope scratch;

/* If the column belongs to the row, writes its name and returns true. */
static bool shape_begin_member(struct writer *w, uint32_t bit, const char *name)
{
    if (!(w->wanted & bit))
        return false;
    buf_print(w->out, "%c\"%s\":", w->separator, name);
    w->separator = ',';
    return true;
}

static void add_text(struct writer *w, uint32_t bit, const char *name, struct slice text)
{
    if (!shape_begin_member(w, bit, name))
        return;
    if (text.ptr)
        buf_add_json(w->out, text);
    else
        buf_add_text(w->out, "null");
}

static void add_bytes(struct writer *w, uint32_t bit, const char *name, struct bytes *text)
{
    if (!shape_begin_member(w, bit, name))
        return;
    if (text)
        rope_add_json(w->out, text, bytes_slice(text));
    else
        buf_add_text(w->out, "null");
}

/* Adds a time without the Z, which the SDK appends. */
static void add_time(struct writer *w, uint32_t bit, const char *name, int64_t unix_ms)
{
    char text[TIME_TEXT_LEN + 1];
    text_from_time(unix_ms, text);
    add_text(w, bit, name,
             unix_ms ? (struct slice){ text, TIME_TEXT_LEN - 1 } : (struct slice){ 0 });
}

static void add_number(struct writer *w, uint32_t bit, const char *name, int64_t number)
{
    if (shape_begin_member(w, bit, name))
        buf_print(w->out, "\"%lld\"", (long long)number);
}

static void add_real(struct writer *w, uint32_t bit, const char *name, double number)
{
    if (!shape_begin_member(w, bit, name))
        return;
    buf_add_char(w->out, '"');
    buf_add_json_double(w->out, number);
    buf_add_char(w->out, '"');
}

static const char *status_of(const struct writer *w)
{
    bool old = w->view->vocabulary == VOCABULARY_A;
    if (old && w->run->status == RUN_PENDING_VERSION)
        return "WAITING_FOR_DEPLOY";
    if (old && w->run->status == RUN_DEQUEUED)
        return "EXECUTING";
    return run_status_name((enum run_status)w->run->status, VOCABULARY_INTERNAL);
}

/* Returns the type to show a packet with: text/plain if it claims to be JSON but is not. */
static struct slice type_of(struct bytes *content, struct slice type)
{
    bool json = !type.len || slice_is(type, "application/json") ||
                slice_is(type, "application/super+json");
    if (json && content && content->len && !scan_bytes_are_json(content))
        return SLICE("text/plain");
    return type.len ? type : SLICE("application/json");
}

static void add_tags(struct writer *w)
{
    const struct tag_list *tags = w->run->tags;
    if (!shape_begin_member(w, 1 << FIELD_TAGS, "runTags"))
        return;
    struct buf *json = &scratch.text;
    rope_clear(&scratch);
    buf_add_char(json, '[');
    for (uint32_t i = 0; tags && i < tags->count; i++) {
        if (i)
            buf_add_char(json, ',');
        buf_add_json(json, bytes_slice(tags->names[i]));
    }
    buf_add_char(json, ']');
    rope_add_json_rope(w->out, &scratch);
}

/* ---- errors ---- */

/* The codes that an SDK knows; any other would end its subscription. */
static const struct {
    const char *code;
    bool old; /* SDK 3.x knows it too */
} codes[] = {
    { "BATCH_ITEM_COULD_NOT_TRIGGER", false },
    { "CONFIGURED_INCORRECTLY", true },
    { "COULD_NOT_FIND_EXECUTOR", true },
    { "COULD_NOT_FIND_TASK", true },
    { "COULD_NOT_IMPORT_TASK", true },
    { "DISK_SPACE_EXCEEDED", true },
    { "GRACEFUL_EXIT_TIMEOUT", true },
    { "HANDLE_ERROR_ERROR", true },
    { "MAX_DURATION_EXCEEDED", true },
    { "OUTDATED_SDK_VERSION", true },
    { "PAYLOAD_TOO_LARGE", false },
    { "POD_EVICTED", true },
    { "POD_UNKNOWN_ERROR", true },
    { "RECURSIVE_WAIT_DEADLOCK", true },
    { "TASK_ALREADY_RUNNING", true },
    { "TASK_DEQUEUED_INVALID_STATE", false },
    { "TASK_DEQUEUED_QUEUE_NOT_FOUND", false },
    { "TASK_DID_CONCURRENT_WAIT", true },
    { "TASK_EXECUTION_ABORTED", true },
    { "TASK_EXECUTION_FAILED", true },
    { "TASK_HAS_N0_EXECUTION_SNAPSHOT", false },
    { "TASK_INPUT_ERROR", true },
    { "TASK_MIDDLEWARE_ERROR", false },
    { "TASK_OUTPUT_ERROR", true },
    { "TASK_PROCESS_EXITED_WITH_NON_ZERO_CODE", true },
    { "TASK_PROCESS_MAYBE_OOM_KILLED", true },
    { "TASK_PROCESS_OOM_KILLED", true },
    { "TASK_PROCESS_SIGKILL_TIMEOUT", true },
    { "TASK_PROCESS_SIGSEGV", true },
    { "TASK_PROCESS_SIGTERM", true },
    { "TASK_RUN_CANCELLED", true },
    { "TASK_RUN_CRASHED", true },
    { "TASK_RUN_DEQUEUED_MAX_RETRIES", false },
    { "TASK_RUN_HEARTBEAT_TIMEOUT", true },
    { "TASK_RUN_STALLED_EXECUTING", false },
    { "TASK_RUN_STALLED_EXECUTING_WITH_WAITPOINTS", false },
    { "TASK_RUN_UNCAUGHT_EXCEPTION", false },
    { "UNSPECIFIED_ERROR", false },
};

static struct slice known_code(struct slice quoted, bool old)
{
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
        if (quoted.len == strlen(codes[i].code) + 2 && (codes[i].old || !old) &&
            memcmp(quoted.ptr + 1, codes[i].code, quoted.len - 2) == 0)
            return quoted;
    return SLICE("\"TASK_EXECUTION_FAILED\"");
}

static void add_member(struct bytes *error, const char *head, struct slice raw,
                       const char *unset)
{
    if (!raw.len && !unset)
        return;
    buf_add_text(&scratch.text, head);
    rope_add(&scratch.text, raw.len ? error : NULL, raw.len ? raw : slice_of(unset));
}

/* Members that errors may have; strings with their quotes, absent if missing. */
enum { TYPE, NAME, MESSAGE, STACK, CODE, RAW, ERROR_MEMBERS };

static void read_error(struct slice error, struct slice texts[ERROR_MEMBERS])
{
    static const char *const names[ERROR_MEMBERS] = { "type",       "name", "message",
                                                      "stackTrace", "code", "raw" };
    members_find(error, names, ERROR_MEMBERS, texts);
    for (size_t i = 0; i < ERROR_MEMBERS; i++)
        if (scan_type(texts[i]) != SCAN_STRING)
            texts[i] = (struct slice){ 0 };
}

/* Renders an error of one of the four kinds, with every member that its kind requires. */
static void render_stored_error(struct bytes *error, bool old)
{
    struct slice texts[ERROR_MEMBERS];
    read_error(bytes_slice(error), texts);
    struct slice type = texts[TYPE];
    rope_clear(&scratch);
    if (slice_is(type, "\"BUILT_IN_ERROR\"")) {
        add_member(error, "{\"type\":", type, NULL);
        add_member(error, ",\"name\":", texts[NAME], "\"Error\"");
        add_member(error, ",\"message\":", texts[MESSAGE], "\"\"");
        add_member(error, ",\"stackTrace\":", texts[STACK], "\"\"");
    } else if (slice_is(type, "\"INTERNAL_ERROR\"")) {
        add_member(error, "{\"type\":", type, NULL);
        add_member(NULL, ",\"code\":", known_code(texts[CODE], old), NULL);
        add_member(error, ",\"message\":", texts[MESSAGE], NULL);
        add_member(error, ",\"stackTrace\":", texts[STACK], NULL);
    } else if (slice_is(type, "\"CUSTOM_ERROR\"") || slice_is(type, "\"STRING_ERROR\"")) {
        add_member(error, "{\"type\":", type, NULL);
        add_member(error, ",\"raw\":", texts[RAW], "\"\"");
    } else {
        buf_add_text(&scratch.text, "{\"type\":\"STRING_ERROR\",\"raw\":");
        buf_add_json(&scratch.text, bytes_slice(error));
    }
    buf_add_char(&scratch.text, '}');
}

static void add_error(struct writer *w)
{
    if (!shape_begin_member(w, 1 << FIELD_ERROR, "error"))
        return;
    if (!w->run->error) {
        buf_add_text(w->out, "null");
        return;
    }
    render_stored_error(w->run->error, w->view->vocabulary == VOCABULARY_A);
    rope_add_json_rope(w->out, &scratch);
}

/* ---- the row ---- */

/* A packet without a type gets the type of its content. */
static void add_packet(struct writer *w, uint32_t bit, const char *name,
                       struct bytes *content, uint32_t type_bit, const char *type_name,
                       const struct bytes *type)
{
    add_bytes(w, bit, name, content);
    if (w->wanted & type_bit)
        add_text(w, type_bit, type_name, type_of(content, bytes_slice(type)));
}

static void add_columns(struct writer *w)
{
    const struct run *run = w->run;
    const struct run_rare *rare = run_rare(run);
    add_text(w, 1 << FIELD_ID, "id", slice_of(run->id));
    add_text(w, 1 << FIELD_TASK, "taskIdentifier", bytes_slice(run->task));
    add_time(w, 1 << FIELD_CREATED_AT, "createdAt", run->created_at);
    add_time(w, 1 << FIELD_UPDATED_AT, "updatedAt", run->updated_at);
    add_time(w, 1 << FIELD_STARTED_AT, "startedAt", run->started_at);
    add_time(w, 1 << FIELD_DELAYED_UNTIL, "delayUntil", rare->delayed_until);
    add_time(w, 1 << FIELD_QUEUED_AT, "queuedAt", run->queued_at);
    add_time(w, 1 << FIELD_EXPIRED_AT, "expiredAt", rare->expired_at);
    add_time(w, 1 << FIELD_FINISHED_AT, "completedAt", run->finished_at);
    add_text(w, 1 << FIELD_ID, "friendlyId", slice_of(run->id));
    add_number(w, 1 << FIELD_NUMBER, "number", run->number);
    add_text(w, 1 << FIELD_IS_TEST, "isTest", run->is_test ? SLICE("t") : SLICE("f"));
    add_text(w, 1 << FIELD_STATUS, "status", slice_of(status_of(w)));
    add_number(w, 1 << FIELD_DURATION_MS, "usageDurationMs", run->usage_ms);
    add_real(w, 1 << FIELD_COST, "costInCents", run->cost_cents);
    add_real(w, 1 << FIELD_BASE_COST, "baseCostInCents", run->base_cost_cents);
    add_text(w, 1 << FIELD_TTL, "ttl", bytes_slice(rare->ttl));
    add_packet(w, 1 << FIELD_PAYLOAD, "payload", run->payload, COLUMN_PAYLOAD_TYPE,
               "payloadType", rare->payload_type);
    add_bytes(w, 1 << FIELD_METADATA, "metadata", run->metadata);
    add_text(w, COLUMN_METADATA_TYPE, "metadataType", SLICE("application/json"));
    add_packet(w, 1 << FIELD_OUTPUT, "output", run->output, COLUMN_OUTPUT_TYPE,
               "outputType", rare->output_type);
    add_tags(w);
    add_error(w);
    add_text(w, 1 << FIELD_STREAMS, "realtimeStreams",
             rare->streams ? bytes_slice(rare->streams) : SLICE("[]"));
    add_text(w, 1 << FIELD_IDEMPOTENCY_KEY, "idempotencyKey",
             bytes_slice(rare->idempotency_shown));
}

void shape_add_row(const struct view *view, const struct run *run, uint32_t fields,
                   bool whole, struct buf *out)
{
    uint32_t wanted = fields;
    if (whole || fields & 1 << FIELD_PAYLOAD)
        wanted |= COLUMN_PAYLOAD_TYPE;
    if (whole || fields & 1 << FIELD_OUTPUT)
        wanted |= COLUMN_OUTPUT_TYPE;
    if (whole)
        wanted |= COLUMN_METADATA_TYPE;
    struct writer w = { view, run, wanted & ~view->skipped, '{', out };
    buf_print(out, "{\"key\":\"%s\",\"value\":", run->id);
    add_columns(&w);
    buf_print(out, "},\"headers\":{\"operation\":\"%s\"}}", whole ? "insert" : "update");
    rope_give_back(&scratch, SCRATCH_MOST);
}
