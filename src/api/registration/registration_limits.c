/* registration_limits.c - reads, writes and applies the limits and gates of a version. */
#include "api/registration/registration_limits.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/json/json_tree.h"
#include "base/json/scan.h"
#include "base/mem.h"
#include "core/fleet/versions.h"

enum {
    LIMITS_MAX = 1000,   /* with a name, of a version */
    NAMED_MAX = 2,       /* of a task */
    GATES_MAX = 2,       /* of a task */
    GATE_TEXT_MAX = 128, /* characters of a name, of a key */
    LIMIT_BYTES_MAX = 1024,
};

/* Takes ownership of the name. */
static struct declared_limit *add_limit(struct worker *worker, struct bytes *name)
{
    size_t size = (worker->limit_count + 1) * sizeof(struct declared_limit);
    worker->limits = mem_resize(worker->limits, size);
    struct declared_limit *limit = &worker->limits[worker->limit_count++];
    *limit =
        (struct declared_limit){ .name = name, .per_key = UINT32_MAX, .total = UINT32_MAX };
    return limit;
}

/* in: what stands before the names of the members. */
static enum err read_values(const struct member_location *location, const json_t *json,
                            const char *in, struct declared_limit *limit)
{
    const struct {
        const char *name;
        uint32_t *value;
    } values[] = { { "perKey", &limit->per_key }, { "total", &limit->total } };
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        char member[48];
        snprintf(member, sizeof(member), "%s%s", in, values[i].name);
        const json_t *value = json_object_get(json, values[i].name);
        if (member_is_set(value) && !location->is_stored && json_number_value(value) == 0)
            return member_refuse(location, member,
                                 "must be a whole number from 1 to 100000");
        if (member_read_limit(location, value, member, values[i].value))
            return ERR_INVALID;
    }
    return OK;
}

/* A member that no code reads would be a limit that does not hold. */
static enum err check_members(const struct member_location *location, const json_t *object,
                              const char *in, const char *first, const char *second)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)object, key, value)
    {
        char rule[64];
        if (!member_is_set(value) || !strcmp(key, first) || !strcmp(key, second))
            continue;
        snprintf(rule, sizeof(rule), "has a member besides %s and %s", first, second);
        return member_refuse(location, in, rule);
    }
    return OK;
}

/* ---- a task ---- */

static struct bytes *inline_name(const struct worker_task *task)
{
    struct buf name = { 0 };
    buf_add_text(&name, "task/");
    buf_add(&name, bytes_slice(task->id));
    struct bytes *bytes = bytes_create_shared(buf_slice(&name));
    buf_finish(&name);
    return bytes;
}

static void add_name(struct buf *names, struct slice name)
{
    buf_add_text(names, names->len ? "," : "");
    buf_add_json(names, name);
}

static enum err read_inline(const struct member_location *location, const json_t *json,
                            struct worker_task *task, struct worker *worker,
                            struct buf *names)
{
    if (!member_is_set(json))
        return OK;
    if (!json_is_object(json))
        return member_refuse(location, "concurrency.inline", "must be an object");
    if (check_members(location, json, "concurrency.inline", "perKey", "total"))
        return ERR_INVALID;
    if (!member_is_set(json_object_get(json, "perKey")) &&
        !member_is_set(json_object_get(json, "total")))
        return OK;
    struct declared_limit *limit = add_limit(worker, inline_name(task));
    task->has_inline = true;
    add_name(names, bytes_slice(limit->name));
    return read_values(location, json, "concurrency.inline.", limit);
}

static enum err read_names(const struct member_location *location, const json_t *list,
                           struct buf *names)
{
    size_t i;
    json_t *name;
    if (!member_is_set(list))
        return OK;
    if (!json_is_array(list) || json_array_size(list) > NAMED_MAX)
        return member_refuse(location, "concurrency.limits",
                             "must be an array of at most 2 names");
    json_array_foreach((json_t *)list, i, name)
    {
        struct slice text = { json_string_value(name), json_string_length(name) };
        if (!limits_is_name(text))
            return member_refuse(location, "concurrency.limits",
                                 "must have names of 1 to 128 letters, digits, - and _");
        if (i && json_equal(name, json_array_get(list, 0)))
            return member_refuse(location, "concurrency.limits", "names a limit twice");
        add_name(names, text);
    }
    return OK;
}

static enum err read_concurrency(const struct member_location *location,
                                 const json_t *concurrency, struct worker_task *task,
                                 struct worker *worker, struct buf *names)
{
    bool is_empty = json_is_array(concurrency) && !json_array_size(concurrency);
    if (!member_is_set(concurrency) || is_empty)
        return OK;
    if (!json_is_object(concurrency))
        return member_refuse(location, "concurrency", "must be an object");
    if (check_members(location, concurrency, "concurrency", "inline", "limits"))
        return ERR_INVALID;
    enum err err =
        read_inline(location, json_object_get(concurrency, "inline"), task, worker, names);
    return err ? err : read_names(location, json_object_get(concurrency, "limits"), names);
}

/* Appends a text of a gate. Returns false if it is not one of 1 to 128 characters. */
static bool add_gate_text(struct buf *gates, const char *name, const json_t *value)
{
    struct slice text = { json_string_value(value), json_string_length(value) };
    buf_add_text(gates, name);
    buf_add_json(gates, text.ptr ? text : SLICE(""));
    return text.len && text_utf16_length(text) <= GATE_TEXT_MAX;
}

/* A declared key is one of few: it is pinned (core/queues/queue_needs.h). */
static enum err read_gate(const struct member_location *location, const json_t *gate,
                          struct buf *gates)
{
    const json_t *key = json_object_get(gate, "concurrencyKey");
    if (!json_is_object(gate))
        return member_refuse(location, "gates", "must be an array of objects");
    if (check_members(location, gate, "gates", "queue", "concurrencyKey"))
        return ERR_INVALID;
    buf_add_text(gates, gates->len ? "," : "");
    if (!add_gate_text(gates, "{\"queue\":", json_object_get(gate, "queue")))
        return member_refuse(location, "gates.queue",
                             "must be a string of 1 to 128 characters");
    if (member_is_set(key) && !add_gate_text(gates, ",\"pin\":", key))
        return member_refuse(location, "gates.concurrencyKey",
                             "must be a string of 1 to 128 characters");
    buf_add_char(gates, '}');
    return OK;
}

static enum err read_gates(const struct member_location *location, const json_t *list,
                           struct buf *gates)
{
    size_t i;
    json_t *gate;
    if (!member_is_set(list))
        return OK;
    if (!json_is_array(list) || json_array_size(list) > GATES_MAX)
        return member_refuse(location, "gates", "must be an array of at most 2 gates");
    json_array_foreach((json_t *)list, i, gate)
    {
        if (read_gate(location, gate, gates))
            return ERR_INVALID;
    }
    return OK;
}

enum err registration_read_needs(const struct member_location *location, const json_t *json,
                                 struct worker_task *task, struct worker *worker)
{
    struct buf names = { 0 }, gates = { 0 };
    enum err err = read_concurrency(location, json_object_get(json, "concurrency"), task,
                                    worker, &names);
    if (!err)
        err = read_gates(location, json_object_get(json, "gates"), &gates);
    if (!err && names.len + gates.len)
        task->limits =
            versions_needs_text(names.len ? &names : NULL, gates.len ? &gates : NULL);
    buf_finish(&names);
    buf_finish(&gates);
    return err;
}

/* ---- the list ---- */

static struct slice limit_key(const void *value)
{
    const struct declared_limit *limit = value;
    return bytes_slice(limit->name);
}

static enum err read_limit(const struct member_location *location, struct slice span,
                           struct worker *worker)
{
    struct failure wrong;
    json_t *json = span.len > LIMIT_BYTES_MAX ? NULL : json_tree_read(span, 0, &wrong);
    const json_t *name = json_object_get(json, "name");
    struct slice text = { json_string_value(name), json_string_length(name) };
    enum err err = OK;
    if (!limits_is_name(text))
        err = member_refuse(location, "name",
                            "must be a string of 1 to 128 letters, digits, - and _");
    else
        err = read_values(location, json, "", add_limit(worker, bytes_create_shared(text)));
    json_decref(json);
    return err;
}

static enum err check_name(const struct table *declared, const struct worker_task *task,
                           struct slice name, struct failure *why)
{
    if (memchr(name.ptr, '/', name.len) || table_find(declared, name))
        return OK;
    return explain(why, ERR_INVALID,
                   "metadata.tasks: the task \"%.80s\" names the concurrency limit "
                   "\"%.*s\", which is not in metadata.concurrencyLimits",
                   task->id->data, SLICE_ARG(name));
}

/* The queue of a task exists even if the task names another one. */
static bool has_queue(const struct worker *worker, struct slice name)
{
    static const struct slice prefix = SLICE("task/");
    return worker_has_queue(worker, name) ||
           (slice_starts(name, prefix.ptr) &&
            worker_task(worker, slice_from(name, prefix.len)));
}

static enum err check_gate(const struct worker *worker, const struct worker_task *task,
                           struct slice gate, struct failure *why)
{
    struct buf name = { 0 };
    enum err err = OK;
    scan_string(scan_member(gate, "queue"), &name);
    if (!has_queue(worker, buf_slice(&name)))
        err = explain(why, ERR_INVALID,
                      "metadata.tasks: the task \"%.80s\" has the gate \"%.*s\", which is "
                      "not in metadata.queues; declare it with queue()",
                      task->id->data, SLICE_ARG(text_clip(buf_slice(&name))));
    buf_finish(&name);
    return err;
}

static enum err check_needs(const struct table *declared, const struct worker *worker,
                            const struct worker_task *task, struct failure *why)
{
    struct scan_members needs = scan_members(bytes_slice(task->limits));
    struct slice element;
    enum err err = OK;
    while (!err && scan_next_element(&needs, &element))
        err = scan_type(element) == SCAN_OBJECT ? check_gate(worker, task, element, why)
              : scan_type(element) == SCAN_STRING
                  ? check_name(declared, task, scan_unquoted(element), why)
                  : OK;
    return err;
}

/* Limits are unique, and every limit and queue that a task names is declared. */
static enum err check_limits(const struct worker *worker, struct failure *why)
{
    struct table declared;
    enum err err = OK;
    table_init(&declared, limit_key);
    for (size_t i = 0; !err && i < worker->limit_count; i++) {
        struct declared_limit *limit = &worker->limits[i];
        if (table_find(&declared, bytes_slice(limit->name)))
            err = explain(why, ERR_INVALID,
                          "metadata.concurrencyLimits: two limits have the name \"%.80s\"; "
                          "give each its own",
                          limit->name->data);
        else
            table_insert(&declared, limit);
    }
    for (size_t i = 0; !err && i < worker->task_count; i++)
        if (worker->tasks[i].limits)
            err = check_needs(&declared, worker, &worker->tasks[i], why);
    table_finish(&declared);
    return err;
}

enum err registration_read_limits(struct slice list, bool is_stored, struct worker *worker,
                                  struct failure *why)
{
    struct member_location location = { "concurrencyLimits", 0, is_stored, why };
    struct scan_members elements = scan_members(list);
    struct slice span;
    enum scan_type type = scan_type(list);
    if (type != SCAN_NONE && type != SCAN_NULL && type != SCAN_ARRAY)
        return explain(why, ERR_INVALID, "metadata.concurrencyLimits: must be an array");
    while (scan_next_element(&elements, &span)) {
        if (location.index == LIMITS_MAX)
            return explain(why, ERR_INVALID,
                           "metadata.concurrencyLimits: too many (max %d)", LIMITS_MAX);
        if (read_limit(&location, span, worker))
            return ERR_INVALID;
        location.index++;
    }
    return is_stored ? OK : check_limits(worker, why);
}

/* ---- writing ---- */

static void write_value(struct buf *out, const char *name, uint32_t value)
{
    bool is_first = out->ptr[out->len - 1] == '{';
    if (value != UINT32_MAX)
        buf_print(out, "%s\"%s\":%u", is_first ? "" : ",", name, value);
}

static void write_values(struct buf *out, const struct declared_limit *limit)
{
    write_value(out, "perKey", limit->per_key);
    write_value(out, "total", limit->total);
}

static bool is_inline(const struct declared_limit *limit)
{
    return memchr(limit->name->data, '/', limit->name->len);
}

static void write_inline(struct buf *out, const struct worker *worker,
                         const struct worker_task *task)
{
    struct bytes *name = inline_name(task);
    buf_add_text(out, "\"inline\":{");
    for (size_t i = 0; i < worker->limit_count; i++)
        if (slice_equal(bytes_slice(worker->limits[i].name), bytes_slice(name)))
            write_values(out, &worker->limits[i]);
    buf_add_text(out, "},");
    bytes_unref(name);
}

static void write_concurrency(struct buf *out, const struct worker *worker,
                              const struct worker_task *task)
{
    struct scan_members names = scan_members(bytes_slice(task->limits));
    struct slice element;
    bool first = true;
    buf_add_text(out, ",\"concurrency\":{");
    if (task->has_inline) {
        write_inline(out, worker, task);
        scan_next_element(&names, &element);
    }
    buf_add_text(out, "\"limits\":[");
    while (scan_next_element(&names, &element)) {
        if (scan_type(element) != SCAN_STRING)
            continue;
        buf_add_text(out, first ? "" : ",");
        buf_add(out, element);
        first = false;
    }
    buf_add_text(out, "]}");
}

static void write_gates(struct buf *out, const struct worker_task *task)
{
    struct scan_members gates = scan_members(bytes_slice(task->limits));
    struct slice element;
    buf_add_text(out, ",\"gates\":[");
    while (scan_next_element(&gates, &element)) {
        struct slice key = scan_member(element, "pin");
        if (scan_type(element) != SCAN_OBJECT)
            continue;
        buf_add_text(out, out->ptr[out->len - 1] == '[' ? "" : ",");
        buf_add_text(out, "{\"queue\":");
        buf_add(out, scan_member(element, "queue"));
        buf_add_text(out, key.ptr ? ",\"concurrencyKey\":" : "");
        buf_add(out, key);
        buf_add_char(out, '}');
    }
    buf_add_char(out, ']');
}

void registration_write_needs(struct buf *out, const struct worker *worker,
                              const struct worker_task *task)
{
    if (!task->limits)
        return;
    write_concurrency(out, worker, task);
    write_gates(out, task);
}

void registration_write_limits(struct buf *out, const struct worker *worker)
{
    bool first = true;
    buf_add_text(out, ",\"concurrencyLimits\":[");
    for (size_t i = 0; i < worker->limit_count; i++) {
        if (is_inline(&worker->limits[i])) /* its task has it */
            continue;
        buf_add_text(out, first ? "{\"name\":" : ",{\"name\":");
        buf_add_json(out, bytes_slice(worker->limits[i].name));
        write_values(out, &worker->limits[i]);
        buf_add_char(out, '}');
        first = false;
    }
    buf_add_char(out, ']');
}

/* ---- applying ---- */

void registration_register_limits(const struct worker *worker, struct environment *env)
{
    for (size_t i = 0; i < worker->limit_count; i++) {
        const struct declared_limit *limit = &worker->limits[i];
        if (!worker->has_limits)
            limits_register(&env->queues, bytes_slice(limit->name));
        limits_change(&env->queues, bytes_slice(limit->name), limit->per_key, limit->total);
    }
}

void registration_forget_limits(const struct worker *worker, struct environment *env)
{
    for (size_t i = 0; worker->has_limits && i < worker->limit_count; i++)
        limits_forget(&env->queues, bytes_slice(worker->limits[i].name));
}
