/* trigger_options.c - reads the options of a trigger: a table with a function each. */
#include "api/triggers/trigger_options.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#include "api/triggers/trigger_reading.h"
#include "base/json/scan.h"
#include "core/queues/queue.h"

enum {
    OPTIONS_MAX = 200, /* members */
    TEXT_MAX = 128,    /* characters of short texts: ttl, region, type, version */
    LANE_MAX = 1024,   /* bytes of a concurrencyKey */
    QUEUE_MAX = 128,
    DURATION_MIN_S = 5,
};

static double clamp(double number, double low, double high)
{
    return number < low ? low : number > high ? high : number;
}

/* ---- delay and ttl ---- */

/* Accepts a date, a duration, or milliseconds since 1970 (like JavaScript's Date). */
static enum err read_delay(struct trigger_reading *r, struct slice value)
{
    struct slice text;
    double number;
    int64_t at;
    enum err err;

    if (scan_type(value) == SCAN_NULL)
        return OK;
    if (scan_type(value) == SCAN_NUMBER) {
        if ((err = reading_number(r, value, &number)))
            return err;
        if (trigger_number_is_no_time(number))
            return explain(r->why, ERR_INVALID,
                           "Validation error: delay %.*s as a number is a date in "
                           "milliseconds since 1970; for a duration send text like 60s, at "
                           "\"options.delay\"",
                           SLICE_ARG(text_clip(value)));
        if (text_number_to_time(number, &at))
            return reading_mistake(r, "Invalid date");
        if (at > r->place->now_ms)
            run_rare_edit(&r->item->run)->delayed_until = at;
        return OK;
    }
    if ((err = reading_text(r, value, TEXT_MAX, &text)) || !text.len)
        return err;
    if (text_to_moment(text, r->place->now_ms, &at))
        return explain(r->why, ERR_INVALID,
                       "Validation error: delay '%.*s' is neither a date like "
                       "2030-01-31T09:00:00Z nor a duration like 1h30m at "
                       "\"options.delay\"",
                       SLICE_ARG(text_clip(text)));
    if (at > r->place->now_ms)
        run_rare_edit(&r->item->run)->delayed_until = at;
    return OK;
}

/* "0s" means the same as 0: the run never expires. */
static enum err read_ttl_text(struct trigger_reading *r, struct slice value)
{
    struct slice text;
    int64_t ms;
    enum err err = reading_text(r, value, TEXT_MAX, &text);
    if (err || !text.len)
        return err;
    if (text_to_duration_ms(text, &ms))
        return explain(
            r->why, ERR_INVALID,
            "Validation error: ttl '%.*s' at \"options.ttl\" is neither a duration like "
            "1h42m nor a number of seconds",
            SLICE_ARG(text_clip(text)));
    if (ms)
        run_rare_edit(&r->item->run)->ttl = bytes_create_shared(text);
    else
        r->item->no_default_ttl = true;
    return OK;
}

static enum err read_ttl(struct trigger_reading *r, struct slice value)
{
    char shown[48];
    double seconds;
    enum err err;

    if (scan_type(value) != SCAN_NUMBER)
        return read_ttl_text(r, value);
    if ((err = reading_integer(r, value, &seconds)))
        return err;
    if (seconds < 0)
        return reading_mistake(r, "Number must be greater than or equal to 0");
    if (seconds == 0) {
        r->item->no_default_ttl = true;
        return OK;
    }
    const int64_t most = text_time_max_ms / 1000;
    text_from_seconds((uint64_t)clamp(seconds, 1, (double)most), shown);
    run_rare_edit(&r->item->run)->ttl = bytes_create_shared(slice_of(shown));
    return OK;
}

/* ---- tags ---- */

static bool is_blank(struct slice text)
{
    return !slice_trim(text).len;
}

static enum err read_tag(struct trigger_reading *r, struct slice value, struct buf *all,
                         struct slice *tag)
{
    struct slice text;
    enum err err = reading_text(r, value, RUN_TAG_CHARS_MAX, &text);
    if (err)
        return err;
    size_t at = all->len;
    buf_add(all, text);
    *tag = (struct slice){ all->ptr + at, text.len };
    return OK;
}

/* Reads the tags into one buffer that is large enough for all. Drops blank ones. */
static enum err read_tag_list(struct trigger_reading *r, struct slice value)
{
    struct slice tags[RUN_TAGS_MAX], element;
    struct buf all = { 0 };
    size_t given = 0, count = 0;
    enum err err = OK;

    buf_reserve(&all, RUN_TAGS_MAX * RUN_TAG_CHARS_MAX * 4);
    struct scan_members members = scan_members(value);
    while (!err && scan_next_element(&members, &element)) {
        struct slice tag;
        if (given++ >= RUN_TAGS_MAX) {
            struct slice text;
            err = reading_text(r, element, RUN_TAG_CHARS_MAX, &text);
            continue;
        }
        err = read_tag(r, element, &all, &tag);
        if (!err && !is_blank(tag))
            tags[count++] = tag;
    }
    if (!err && given > RUN_TAGS_MAX)
        err = explain(r->why, ERR_RULE,
                      "Runs can only have %d tags, you're trying to set %zu.", RUN_TAGS_MAX,
                      given);
    if (!err)
        r->item->run.tags = tag_list_create(tags, count);
    buf_finish(&all);
    return err;
}

static enum err read_tags(struct trigger_reading *r, struct slice value)
{
    struct slice tag;
    if (scan_type(value) == SCAN_ARRAY)
        return read_tag_list(r, value);
    if (scan_type(value) != SCAN_STRING)
        return reading_mistake(r, "Expected string or array of strings");
    enum err err = reading_text(r, value, RUN_TAG_CHARS_MAX, &tag);
    if (!err && !is_blank(tag))
        r->item->run.tags = tag_list_create(&tag, 1);
    return err;
}

/* ---- queue, machine, version, region ---- */

/* Copies the characters that a queue name may have and drops all others. */
static size_t clean_characters(struct slice name, char out[QUEUE_MAX])
{
    size_t len = 0;
    for (size_t i = 0; i < name.len && len < QUEUE_MAX; i++) {
        unsigned char c = (unsigned char)name.ptr[i];
        if (c < 0x80 && (isalnum(c) || c == '_' || c == '-' || c == '/'))
            out[len++] = (char)c;
    }
    return len;
}

/* Cleans the name of a queue, but not a registered one: a version may declare any name.
 * Returns NULL if no valid character is left. */
static struct bytes *queue_of(const struct trigger_place *place, struct slice name)
{
    char clean[QUEUE_MAX];
    if (name.len && queues_is_registered(place->queues, name))
        return bytes_create_shared(name);
    size_t len = clean_characters(name, clean);
    return len ? bytes_create_shared((struct slice){ clean, len }) : NULL;
}

/* Rejects objects with too many members or with duplicate names. */
static enum err check_members(struct trigger_reading *r, struct slice object,
                              const char *where)
{
    if (!scan_has_at_most(object, OPTIONS_MAX))
        return explain(r->why, ERR_INVALID,
                       "Validation error: More than %d members at \"%s\"", OPTIONS_MAX,
                       where);
    if (scan_has_duplicate(object))
        return explain(r->why, ERR_INVALID,
                       "Validation error: A member is named twice at \"%s\"", where);
    return OK;
}

/* Members of a queue option. SDK 3.3.17 also sends a concurrency limit, which is checked
 * but has no effect: the queue's own limit applies. */
static const char *const queue_members[] = { "name", "concurrencyLimit", NULL };

static enum err read_queue_object(struct trigger_reading *r, struct slice object,
                                  const char *where, struct slice *name)
{
    char path[32];
    double number;
    enum err err = check_members(r, object, where);
    if (err)
        return err;
    struct slice limit = scan_member(object, "concurrencyLimit");
    if (limit.ptr && scan_type(limit) != SCAN_NULL)
        err = reading_integer(r, limit, &number);
    snprintf(path, sizeof(path), "%s.", where + sizeof("options.") - 1);
    if (!err)
        reading_report_others(r, path, object, queue_members);
    *name = scan_member(object, "name");
    return err;
}

/* Accepts a nested queue. SDK 4 wraps the name in {name: …}, so a caller that passes an
 * SDK 3 object sends {"name": {"name": "q", "concurrencyLimit": 1}}. */
static enum err read_queue(struct trigger_reading *r, struct slice value)
{
    struct slice name, text;
    if (scan_type(value) != SCAN_OBJECT)
        return reading_mistake(r, "Expected object");
    enum err err = read_queue_object(r, value, "options.queue", &name);
    bool is_wrapped = !err && scan_type(name) == SCAN_OBJECT;
    if (is_wrapped)
        err = read_queue_object(r, name, "options.queue.name", &name);
    if (err)
        return err;
    if (!name.ptr)
        return is_wrapped ? reading_mistake(r, "Expected string") : OK;
    if ((err = reading_text(r, name, SIZE_MAX, &text)))
        return err;
    r->item->run.queue = queue_of(r->place, text);
    r->has_queue = r->item->run.queue != NULL;
    return OK;
}

/* Converts a number to the same text as JavaScript does. */
static enum err read_concurrency_key(struct trigger_reading *r, struct slice value)
{
    struct slice text;
    double number;
    enum err err;
    if (scan_type(value) == SCAN_NUMBER) {
        if ((err = reading_number(r, value, &number)))
            return err;
        buf_clear(&r->text);
        buf_add_json_double(&r->text, number == 0 ? 0 : number);
        text = buf_slice(&r->text);
    } else if ((err = reading_text(r, value, LANE_MAX, &text))) {
        return err;
    }
    if (text.len)
        run_rare_edit(&r->item->run)->concurrency_key = bytes_create_shared(text);
    return OK;
}

static enum err read_machine(struct trigger_reading *r, struct slice value)
{
    struct slice text;
    enum machine machine;
    enum err err = reading_text(r, value, TEXT_MAX, &text);
    if (err)
        return err;
    if (machine_from_name(text, &machine))
        return reading_mistake(r,
                               "Expected micro, small-1x, small-2x, medium-1x, medium-2x, "
                               "large-1x or large-2x");
    r->item->run.machine = (uint8_t)machine;
    r->has_machine = true;
    return OK;
}

static enum err read_version(struct trigger_reading *r, struct slice value)
{
    const struct workers *workers = r->place->workers;
    struct slice text;
    enum err err = reading_text(r, value, TEXT_MAX, &text);
    if (err || !text.len)
        return err;
    if (!workers_by_version(workers, text))
        return explain(r->why, ERR_RULE,
                       workers_knows_gone(workers, text)
                           ? "Task locked to version '%.*s', which is no longer kept."
                           : "Task locked to version '%.*s', but no worker found with that "
                             "version.",
                       SLICE_ARG(text_clip(text)));
    r->item->run.worker_version = bytes_create_shared(text);
    return OK;
}

/* Checked when all options are known. A run locked to a version that lacks its task
 * would wait forever, and so would a parent that waits for the run. */
static enum err check_version(struct trigger_reading *r)
{
    const struct run *run = &r->item->run;
    if (!run->worker_version)
        return OK;
    const struct slice task = bytes_slice(run->task), queue = bytes_slice(run->queue);
    const struct slice version = bytes_slice(run->worker_version);
    const struct worker *worker = workers_by_version(r->place->workers, version);
    if (!worker_task(worker, task))
        return explain(r->why, ERR_RULE, "Task '%.*s' not found on locked version '%.*s'.",
                       SLICE_ARG(text_clip(task)), SLICE_ARG(version));
    if (r->has_queue && !worker_has_queue(worker, queue))
        return explain(r->why, ERR_RULE,
                       "Specified queue '%.*s' not found or not associated with locked "
                       "version '%.*s'.",
                       SLICE_ARG(text_clip(queue)), SLICE_ARG(version));
    return OK;
}

static enum err keep_deployment(struct trigger_reading *r, struct slice value)
{
    r->deployment = value;
    return OK;
}

/* Read when all options are known. In builds on some hosts the SDK sends it unasked, even
 * together with a version, which then wins. In dev, nothing is deployed, so it has no
 * effect. */
static enum err finish_deployment(struct trigger_reading *r)
{
    struct slice text;
    r->name = "externalDeploymentId";
    if (!r->deployment.ptr || scan_type(r->deployment) == SCAN_NULL)
        return OK;
    enum err err = reading_text(r, r->deployment, SIZE_MAX, &text);
    if (err)
        return err;
    text = slice_trim(text);
    if (text_utf16_length(text) > EXTERNAL_ID_MAX)
        return reading_mistake(r, "String must contain at most 128 character(s)");
    if (text.len && !r->place->is_dev && !r->item->run.worker_version)
        run_rare_edit(&r->item->run)->external_deployment = bytes_create_shared(text);
    return OK;
}

/* The region is stored and shown but has no effect: all runs execute in one place. */
static enum err read_region(struct trigger_reading *r, struct slice value)
{
    struct slice text;
    if (scan_type(value) == SCAN_NULL)
        return OK;
    enum err err = reading_text(r, value, TEXT_MAX, &text);
    if (!err && text.len)
        run_rare_edit(&r->item->run)->region = bytes_create_shared(text);
    return err;
}

/* ---- attempts, duration, priority, metadata, parent ---- */

static enum err read_max_attempts(struct trigger_reading *r, struct slice value)
{
    double number;
    enum err err = reading_integer(r, value, &number);
    if (!err)
        r->item->run.max_attempts = (uint16_t)clamp(number, 1, RUN_ATTEMPTS_MAX);
    return err;
}

static enum err read_max_duration(struct trigger_reading *r, struct slice value)
{
    double seconds;
    enum err err = reading_number(r, value, &seconds);
    if (!err)
        r->item->run.max_duration_s = (uint32_t)clamp(seconds, DURATION_MIN_S, INT32_MAX);
    return err;
}

static enum err read_priority(struct trigger_reading *r, struct slice value)
{
    double seconds;
    enum err err = reading_number(r, value, &seconds);
    if (!err && seconds != 0)
        run_rare_edit(&r->item->run)->priority_ms =
            (int32_t)clamp(round(seconds * 1000), INT32_MIN, INT32_MAX);
    return err;
}

static enum err read_test(struct trigger_reading *r, struct slice value)
{
    bool flag = false;
    enum err err = reading_flag(r, value, &flag);
    r->item->run.is_test = flag;
    return err;
}

/* Accepts only an object, because clients must get an object back. */
static enum err read_metadata(struct trigger_reading *r, struct slice value)
{
    if (scan_type(value) == SCAN_NULL)
        return OK;
    if (value.len > RUN_METADATA_MAX)
        return explain(r->why, ERR_TOO_LARGE, "Metadata exceeds maximum size of %d bytes",
                       RUN_METADATA_MAX);
    if (scan_type(value) != SCAN_OBJECT)
        return reading_mistake(r, "Expected object");
    r->item->run.metadata = bytes_create(value);
    return OK;
}

static enum err read_parent(struct trigger_reading *r, struct slice value)
{
    struct slice text;
    enum err err = reading_text(r, value, TEXT_MAX, &text);
    if (!err && text.len)
        r->parent->run_id = bytes_create(text);
    return err;
}

static enum err read_resume(struct trigger_reading *r, struct slice value)
{
    return reading_flag(r, value, &r->parent->resume);
}

static enum err read_size(struct trigger_reading *r, struct slice value)
{
    double number = 0;
    enum err err = reading_integer(r, value, &number);
    if (!err && number < 0)
        return reading_mistake(r, "Number must be greater than or equal to 0");
    return err;
}

/* ---- options that are read last ---- */

static enum err keep_type(struct trigger_reading *r, struct slice value)
{
    r->type = value;
    return OK;
}

static enum err keep_key(struct trigger_reading *r, struct slice value)
{
    r->key = value;
    return OK;
}

static enum err keep_key_ttl(struct trigger_reading *r, struct slice value)
{
    r->key_ttl = value;
    return OK;
}

static enum err keep_key_options(struct trigger_reading *r, struct slice value)
{
    r->key_options = value;
    return OK;
}

static enum err keep_debounce(struct trigger_reading *r, struct slice value)
{
    r->debounce = value;
    return OK;
}

/* Stores the payload. JSON keeps its bytes; any other type stores the decoded text of the
 * string. An empty string counts as no payload. If the type is not JSON, anything but a
 * string is dropped. */
static enum err finish_payload(struct trigger_reading *r)
{
    const struct trigger_source *source = r->source;
    struct run *run = &r->item->run;
    struct slice type = SLICE("application/json");
    enum err err;

    r->name = "payloadType";
    if (r->type.ptr && (err = reading_text(r, r->type, TEXT_MAX, &type)))
        return err;
    bool is_json = !type.len || slice_is(type, "application/json");
    bool is_string = scan_type(source->payload) == SCAN_STRING;
    if (!is_json)
        run_rare_edit(run)->payload_type = bytes_create_shared(type);
    if (is_string && !source->payload_text.len)
        return OK;
    if (!is_string && (!is_json || !source->payload.ptr))
        return OK;
    /* If a type is named, the string holds a text of that type. */
    struct buf spelled = { 0 };
    bool should_be_json =
        (is_json && r->type.ptr) || slice_is(type, "application/super+json");
    bool is_spelled = is_string && should_be_json && !source->text_is_json &&
                      scan_spell_halves(source->payload_text, &spelled);
    bool text_is_json = source->text_is_json || is_spelled;
    bool is_text = is_string && (!is_json || (r->type.ptr && text_is_json));
    struct slice text = is_spelled ? buf_slice(&spelled) : source->payload_text;
    run->payload = bytes_create(is_text ? text : source->payload);
    run->payload->json = is_text && !text_is_json ? BYTES_NO_JSON : BYTES_JSON;
    buf_finish(&spelled);
    return OK;
}

/* ---- the table ---- */

static const struct option options[] = {
    { "payloadType", keep_type, false },
    { "payloadSize", read_size, false },
    { "delay", read_delay, false },
    { "debounce", keep_debounce, false },
    { "ttl", read_ttl, false },
    { "tags", read_tags, false },
    { "idempotencyKey", keep_key, false },
    { "idempotencyKeyTTL", keep_key_ttl, false },
    { "idempotencyKeyOptions", keep_key_options, false },
    { "queue", read_queue, false },
    { "concurrencyKey", read_concurrency_key, false },
    { "concurrency", reading_concurrency, false },
    { "gates", reading_gates, false },
    { "machine", read_machine, false },
    { "maxAttempts", read_max_attempts, false },
    { "maxDuration", read_max_duration, false },
    { "priority", read_priority, false },
    { "metadata", read_metadata, false },
    { "test", read_test, false },
    { "lockToVersion", read_version, false },
    { "externalDeploymentId", keep_deployment, false },
    { "region", read_region, false },
    { "parentRunId", read_parent, true },
    { "resumeParentOnCompletion", read_resume, true },
    { 0 },
};

static const struct option *find_option(const struct option *table, struct slice key)
{
    for (; table->name; table++)
        if (scan_key_is(key, slice_of(table->name)))
            return table;
    return NULL;
}

static enum err read_option(struct trigger_reading *r, struct slice key, struct slice value)
{
    const struct option *option = find_option(options, key);
    if (!option)
        option = find_option(trigger_undone, key);
    if (!option || (option->is_alone && r->source->is_item)) {
        reading_report(r, key);
        return OK;
    }
    r->name = option->name;
    return option->read(r, value);
}

static enum err check_options(struct trigger_reading *r, struct slice object)
{
    if (scan_type(object) != SCAN_OBJECT)
        return explain(r->why, ERR_INVALID,
                       "Validation error: Expected object at \"options\"");
    if (object.len > TRIGGER_OPTIONS_MAX)
        return explain(r->why, ERR_TOO_LARGE,
                       "The options are larger than %d bytes; metadata may have %d",
                       TRIGGER_OPTIONS_MAX, RUN_METADATA_MAX);
    return check_members(r, object, "options");
}

static enum err read_options(struct trigger_reading *r, struct slice object)
{
    struct scan_members members;
    struct slice key, value;
    enum err err;

    if (!object.ptr)
        return OK;
    if ((err = check_options(r, object)))
        return err;
    members = scan_members(object);
    while (!err && scan_next_member(&members, &key, &value))
        err = read_option(r, key, value);
    reading_take_needs(r);
    return err ? err : finish_deployment(r);
}

enum err trigger_options_read(const struct trigger_source *source,
                              const struct trigger_place *place, struct trigger *item,
                              struct trigger_parent *parent, struct failure *why)
{
    struct trigger_reading r = {
        .source = source, .place = place, .item = item, .parent = parent, .why = why
    };
    if (!source->task.len || source->task.len > TRIGGER_TASK_MAX)
        return explain(why, ERR_INVALID,
                       "Validation error: The id of the task must have 1 to %d bytes",
                       TRIGGER_TASK_MAX);
    item->run.task = bytes_create_shared(source->task);
    enum err err = read_options(&r, source->options);
    if (!err)
        err = check_version(&r);
    if (!err)
        err = reading_take_debounce(&r);
    if (!err)
        err = reading_take_key(&r);
    if (!err)
        err = finish_payload(&r);
    trigger_default_to_task(item, workers_task_of(place->workers, &item->run),
                            r.has_machine);
    buf_finish(&r.text);
    buf_finish(&r.limits);
    buf_finish(&r.gates);
    return err;
}
