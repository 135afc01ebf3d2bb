/* wire_read.c - reads a client's message from JSON into a struct wire_message.
 *
 * Unknown members are ignored, so that newer clients can talk to older gateways, and noted,
 * so that the client learns which ones. null means absent. A member with a wrong type or
 * value is refused, and the error names it. A quoted text of the client is cut at the end
 * of a character. */
#include "core/wire/wire.h"

#include <jansson.h>

#include "base/json/json_tree.h"
#include "base/json/scan.h"
#include "base/mem.h"
#include "base/text.h"
#include "runcast/protocol.h"

enum {
    DEPTH_MAX = 64,
    /* Maximum length of a run or batch id. A foreign id matches nothing. */
    ID_CHARS_MAX = 64,
    TASKS_MAX = 64,
    TASK_CHARS_MAX = 256,
    LIMIT_MAX = 100000,
    WATCH_LIMIT = 100,
    EVERY_MAX_MS = 3600000,
    QUOTED_MAX = 40, /* bytes of the client's text in an error */
};

/* JavaScript's largest safe integer */
static const int64_t number_max = (INT64_C(1) << 53) - 1;

struct reader {
    json_t *object;
    int64_t now_ms;
    struct wire_message *message;
    const char **code;
    struct failure *why;
};

__attribute__((format(printf, 3, 4))) static enum err
refuse(struct reader *reader, const char *code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(reader->why->text, sizeof(reader->why->text), format, args);
    va_end(args);
    *reader->code = code;
    return reader->why->code = ERR_INVALID;
}

static struct slice text_of(const json_t *string)
{
    return (struct slice){ json_string_value(string), json_string_length(string) };
}

/* For "%.*s": cuts the text to whole characters within QUOTED_MAX bytes. */
static struct slice quoted(struct slice text)
{
    if (text.len <= QUOTED_MAX)
        return text;
    size_t len = QUOTED_MAX;
    while (len && ((unsigned char)text.ptr[len] & 0xC0) == 0x80)
        len--;
    return (struct slice){ text.ptr, len };
}

static size_t count_chars(struct slice text)
{
    size_t count = 0;
    for (size_t i = 0; i < text.len; i++)
        count += ((unsigned char)text.ptr[i] & 0xC0) != 0x80;
    return count;
}

/* ---- members ---- */

static json_t *get(const struct reader *reader, const char *name)
{
    json_t *value = json_object_get(reader->object, name);
    return json_is_null(value) ? NULL : value;
}

/* Leaves text alone if the member is absent. max: in characters; 0: any length. */
static enum err read_text(struct reader *reader, const char *name, size_t max,
                          struct slice *text)
{
    const json_t *value = get(reader, name);
    if (!value)
        return OK;
    struct slice found = json_is_string(value) ? text_of(value) : (struct slice){ 0 };
    if (!found.len || (max && count_chars(found) > max))
        return refuse(reader, "bad_member",
                      max ? "%s: not a string of 1 to %zu characters"
                          : "%s: empty, or not a string",
                      name, max);
    *text = found;
    return OK;
}

/* Leaves *number alone if the member is absent. */
static enum err read_number(struct reader *reader, const char *name, int64_t min,
                            int64_t max, int64_t *number, bool *has)
{
    const json_t *value = get(reader, name);
    if (!value)
        return OK;
    if (!json_is_integer(value) || json_integer_value(value) < min ||
        json_integer_value(value) > max)
        return refuse(reader, "bad_member", "%s: not an integer from %lld to %lld", name,
                      (long long)min, (long long)max);
    *number = json_integer_value(value);
    if (has)
        *has = true;
    return OK;
}

/* Reads 1 to max strings into names. Leaves *count alone if the member is absent. */
static enum err read_names(struct reader *reader, const char *name, size_t max,
                           size_t chars_max, struct slice *names, size_t *count)
{
    const json_t *array = get(reader, name);
    if (!array)
        return OK;
    size_t size = json_array_size(array); /* 0: not an array, or an empty one */
    if (!size || size > max)
        return refuse(reader, "bad_member", "%s: not an array of 1 to %zu strings", name,
                      max);
    for (size_t i = 0; i < size; i++) {
        const json_t *value = json_array_get(array, i);
        struct slice text = json_is_string(value) ? text_of(value) : (struct slice){ 0 };
        if (!text.len || count_chars(text) > chars_max)
            return refuse(reader, "bad_member",
                          "%s[%zu]: not a string of 1 to %zu characters", name, i,
                          chars_max);
        names[i] = text;
    }
    *count = size;
    return OK;
}

static enum err read_token(struct reader *reader)
{
    struct slice token = { 0 };
    enum err refused = read_text(reader, "token", 0, &token);
    if (!refused && token.ptr && memchr(token.ptr, '\0', token.len))
        return refuse(reader, "bad_member", "token: contains a zero byte");
    if (!refused && token.ptr)
        reader->message->token = mem_text(token);
    return refused;
}

static enum err read_id(struct reader *reader)
{
    struct wire_message *message = reader->message;
    if (read_number(reader, "id", 0, number_max, &message->id, &message->has_id))
        return reader->why->code;
    if (!message->has_id)
        return refuse(reader, "bad_member",
                      "id: missing; choose an integer for the subscription");
    return OK;
}

/* ---- hello and auth ---- */

/* ["a","b"]: these. ["-a"]: all but these. ["a","b","-b"]: a. */
static enum err read_fields(struct reader *reader)
{
    const json_t *array = get(reader, "fields");
    if (!array)
        return OK;
    if (!json_is_array(array) || json_array_size(array) > WIRE_FIELDS_MAX)
        return refuse(reader, "bad_member", "fields: not an array of at most %d names",
                      WIRE_FIELDS_MAX);
    uint32_t wanted = 0, unwanted = 0;
    for (size_t i = 0; i < json_array_size(array); i++) {
        const json_t *value = json_array_get(array, i);
        if (!json_is_string(value))
            return refuse(reader, "bad_member", "fields[%zu]: not the name of a field", i);
        struct slice name = text_of(value);
        bool minus = slice_starts(name, "-");
        enum field field = field_from_name(minus ? slice_from(name, 1) : name);
        if (field == FIELD_COUNT)
            return refuse(reader, "bad_member", "fields: a run has no field \"%.*s\"",
                          SLICE_ARG(quoted(name)));
        *(minus ? &unwanted : &wanted) |= 1u << field;
    }
    if (!wanted && unwanted)
        wanted = FIELDS_DEFAULT;
    reader->message->fields = (wanted & ~unwanted) | FIELDS_ALWAYS;
    reader->message->has_fields = true;
    return OK;
}

static enum err read_hello(struct reader *reader)
{
    struct wire_message *message = reader->message;
    struct slice api = { 0 };
    if (read_token(reader) || read_fields(reader) || read_text(reader, "api", 0, &api) ||
        read_number(reader, "every", 0, EVERY_MAX_MS, &message->every_ms, NULL))
        return reader->why->code;
    if (api.ptr && !slice_is(api, "2025-07-16"))
        return refuse(reader, "unknown_api",
                      "api: unknown; send \"2025-07-16\", or leave it out");
    message->vocabulary_b = api.ptr;
    return OK;
}

static enum err read_auth(struct reader *reader)
{
    enum err refused = read_token(reader);
    if (!refused && !reader->message->token)
        return refuse(reader, "bad_member", "token: missing; send the new token");
    return refused;
}

/* ---- sub and unsub ---- */

static enum err read_topic(struct reader *reader, struct slice *run,
                           struct run_filter *wanted)
{
    const json_t *all = get(reader, "all");
    if (!!get(reader, "run") + !!get(reader, "batch") + !!get(reader, "tags") + !!all != 1)
        return refuse(reader, "bad_member",
                      "sub: needs exactly one of run, batch, tags and all");
    if (all && !json_is_true(all))
        return refuse(reader, "bad_member", "all: not true; send true, or leave it out");
    if (read_text(reader, "run", ID_CHARS_MAX, run) ||
        read_text(reader, "batch", ID_CHARS_MAX, &wanted->batch) ||
        read_names(reader, "tags", PROTOCOL_TAGS, RUN_TAG_CHARS_MAX, wanted->tags,
                   &wanted->tag_count))
        return reader->why->code;
    wanted->every_tag = wanted->tag_count > 0;
    return OK;
}

static enum err read_since(struct reader *reader, struct run_filter *wanted)
{
    struct slice since = { 0 };
    int64_t ms, from;
    if (read_text(reader, "since", 0, &since))
        return reader->why->code;
    if (!since.ptr)
        return OK;
    if (!text_to_duration_ms(since, &ms))
        from = reader->now_ms - ms;
    else if (text_to_time(since, &from))
        return refuse(reader, "bad_member",
                      "since: \"%.*s\" is neither a duration like 24h nor an ISO 8601 time",
                      SLICE_ARG(quoted(since)));
    wanted->created_from = from > 0 ? from : 0;
    return OK;
}

static bool is_position(const json_t *value)
{
    return json_is_integer(value) && json_integer_value(value) >= 0 &&
           json_integer_value(value) <= number_max;
}

static enum err read_from(struct reader *reader)
{
    struct wire_message *message = reader->message;
    const json_t *from = get(reader, "from");
    if (!from)
        return OK;
    const json_t *epoch = json_array_get(from, 0);
    const json_t *seq = json_array_get(from, 1), *base = json_array_get(from, 2);
    if (json_array_size(from) != 3 || !json_string_length(epoch) ||
        json_string_length(epoch) >= sizeof(message->from_epoch) || !is_position(seq) ||
        !is_position(base) || json_integer_value(base) > json_integer_value(seq))
        return refuse(reader, "bad_member",
                      "from: not a position; send [epoch of welcome, seq of the last "
                      "frame, seq of the last "
                      "frame without more]");
    memcpy(message->from_epoch, json_string_value(epoch), json_string_length(epoch) + 1);
    message->from_seq = (uint64_t)json_integer_value(seq);
    message->from_base = (uint64_t)json_integer_value(base);
    message->has_from = true;
    return OK;
}

static enum err read_counts(struct reader *reader)
{
    const json_t *counts = get(reader, "counts");
    if (counts && !json_is_boolean(counts))
        return refuse(reader, "bad_member", "counts: neither true nor false");
    reader->message->counts = json_is_true(counts);
    return OK;
}

static enum err read_sub(struct reader *reader)
{
    struct wire_message *message = reader->message;
    struct slice run = { 0 }, tags[PROTOCOL_TAGS], tasks[TASKS_MAX];
    struct run_filter wanted = { .is_test = -1, .tags = tags, .tasks = tasks };
    if (read_id(reader) || read_topic(reader, &run, &wanted) ||
        read_names(reader, "task", TASKS_MAX, TASK_CHARS_MAX, tasks, &wanted.task_count) ||
        read_since(reader, &wanted) ||
        read_number(reader, "limit", 1, LIMIT_MAX, &message->limit, NULL) ||
        read_from(reader) || read_counts(reader))
        return reader->why->code;
    if (message->counts && run.ptr)
        return refuse(reader, "bad_member",
                      "counts: not for a single run; use them with batch, tags or all");
    message->filter = filter_create(run, &wanted);
    return OK;
}

/* ---- watch ---- */

/* The filter is read by the code that lists runs (api/runs). */
static enum err read_watch(struct reader *reader)
{
    struct wire_message *message = reader->message;
    message->limit = WATCH_LIMIT;
    if (read_id(reader) || read_counts(reader) ||
        read_number(reader, "limit", 1, PROTOCOL_WATCH_LIMIT, &message->limit, NULL))
        return reader->why->code;
    message->wanted = json_incref(get(reader, "filter"));
    return OK;
}

/* ---- messages ---- */

static const struct {
    const char *name;
    enum err (*read)(struct reader *reader);
    const char *members; /* besides op, each between spaces */
} ops[] = {
    [WIRE_HELLO] = { "hello", read_hello, " token fields every api " },
    [WIRE_SUB] = { "sub", read_sub,
                   " id run batch tags all task since limit from counts " },
    [WIRE_WATCH] = { "watch", read_watch, " id filter limit counts " },
    [WIRE_UNSUB] = { "unsub", read_id, " id " },
    [WIRE_AUTH] = { "auth", read_auth, " token " },
};

static bool is_known(enum wire_op op, const char *name)
{
    struct slice rest = slice_of(ops[op].members), one;
    while (slice_split(&rest, ' ', &one))
        if (one.len && slice_is(one, name))
            return true;
    return strcmp(name, "op") == 0;
}

/* Notes unknown members, as many as a response has space for. */
static void note_others(struct reader *reader)
{
    struct slice names[WIRE_IGNORED_MAX];
    size_t count = 0, bytes = 0;
    const char *name;
    json_t *value;
    json_object_foreach(reader->object, name, value)
    {
        size_t len = strlen(name);
        if (is_known(reader->message->op, name) || count == WIRE_IGNORED_MAX ||
            bytes + len > WIRE_IGNORED_BYTES)
            continue;
        names[count++] = slice_of(name);
        bytes += len;
    }
    if (count)
        reader->message->ignored = tag_list_create(names, count);
}

static enum err read_message(struct reader *reader)
{
    struct slice op = { 0 };
    if (!json_is_object(reader->object))
        return refuse(reader, "bad_message",
                      "not an object; send one JSON object per message");
    if (read_text(reader, "op", 0, &op))
        return reader->why->code;
    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
        if (!slice_is(op, ops[i].name))
            continue;
        reader->message->op = (enum wire_op)i;
        note_others(reader);
        return ops[i].read(reader);
    }
    if (!op.ptr)
        return refuse(reader, "unknown_op",
                      "op: missing; send hello, sub, watch, unsub or auth");
    return refuse(reader, "unknown_op",
                  "op: \"%.*s\" is unknown; send hello, sub, watch, unsub or auth",
                  SLICE_ARG(quoted(op)));
}

static json_t *parse(struct reader *reader, struct slice text)
{
    struct failure wrong;
    struct scan scan;
    scan_init(&scan);
    bool is_refused = scan_feed(&scan, text);
    json_t *parsed = NULL;
    if (scan_finish(&scan) || is_refused)
        refuse(reader, "bad_message", "not JSON at byte %zu; send one object per message",
               scan.offset);
    else if (scan_deeper_than(text, DEPTH_MAX))
        refuse(reader, "bad_message", "nested deeper than %d", DEPTH_MAX);
    else if (!(parsed = json_tree_read(text, TREE_ONE_OF_EACH, &wrong)))
        refuse(reader, "bad_message", "%s", wrong.text);
    return parsed;
}

enum err wire_read(struct slice text, int64_t now_ms, struct wire_message *message,
                   const char **code, struct failure *why)
{
    *message = (struct wire_message){ 0 };
    struct reader reader = { NULL, now_ms, message, code, why };
    reader.object = parse(&reader, text);
    if (!reader.object)
        return ERR_INVALID;
    enum err refused = read_message(&reader);
    json_decref(reader.object);
    if (refused) {
        struct wire_message known = { .id = message->id, .has_id = message->has_id };
        wire_message_finish(message);
        *message = known;
    }
    return refused;
}

void wire_message_finish(struct wire_message *message)
{
    free(message->token);
    tag_list_unref(message->ignored);
    json_decref(message->wanted);
    filter_finish(&message->filter);
    *message = (struct wire_message){ 0 };
}
