/* unsupported.c - collects names of unsupported features for a refusal or for warnings. */
#include "api/registration/unsupported.h"

#include <stdio.h>
#include <string.h>

#include "base/json/members.h"
#include "base/json/scan.h"

enum { NAMES_BYTES_MAX = 16 * 1024 }; /* of one kind; later ones are left out */

void unsupported_finish(struct unsupported *all)
{
    buf_finish(&all->limits);
    buf_finish(&all->prompts);
    buf_finish(&all->agents);
    buf_finish(&all->webhooks);
}

/* ---- declared values ---- */

/* Returns true if the value is not empty. Looks into objects: {"inline":{},"limits":[]}
 * declares nothing. The parser limits the depth of a task. */
static bool is_declared(const json_t *value)
{
    const char *key;
    json_t *member;
    if (!json_is_object(value))
        return json_array_size(value) || json_is_number(value) || json_is_true(value) ||
               json_string_length(value);
    json_object_foreach((json_t *)value, key, member) if (is_declared(member)) return true;
    return false;
}

static void add_name(struct buf *names, struct slice name)
{
    if (names->len > NAMES_BYTES_MAX)
        return;
    if (names->len)
        buf_add_char(names, ',');
    buf_add_json(names, name);
}

static struct slice text_of(const json_t *object, const char *member)
{
    const char *text = json_string_value(json_object_get(object, member));
    return text ? slice_of(text) : SLICE("");
}

/* Appends a limit, like: task "a" (concurrency). */
static void add_limit(struct unsupported *all, const char *kind, struct slice name,
                      const char *member)
{
    if (all->limits.len > NAMES_BYTES_MAX)
        return;
    buf_print(&all->limits, "%s%s ", all->limits.len ? ", " : "", kind);
    buf_add_json(&all->limits, name);
    if (member)
        buf_print(&all->limits, " (%s)", member);
}

/* Members of a queue that only tasks have. */
static const char *const queue_limits[] = { "concurrency", "gates" };
enum { QUEUE_LIMITS = sizeof(queue_limits) / sizeof(queue_limits[0]) };

void unsupported_note_task(struct unsupported *all, const json_t *task)
{
    struct slice id = text_of(task, "id"), source = text_of(task, "triggerSource");
    const json_t *queue = json_object_get(task, "queue");
    char member[40];
    for (size_t i = 0; i < QUEUE_LIMITS; i++) {
        snprintf(member, sizeof(member), "queue.%s", queue_limits[i]);
        if (is_declared(json_object_get(queue, queue_limits[i])))
            add_limit(all, "task", id, member);
    }
    if (is_declared(json_object_get(task, "agentConfig")) || slice_is(source, "agent"))
        add_name(&all->agents, id);
    if (slice_is(source, "webhook"))
        add_name(&all->webhooks, id);
}

void unsupported_note_queue(struct unsupported *all, const json_t *queue)
{
    for (size_t i = 0; i < QUEUE_LIMITS; i++)
        if (is_declared(json_object_get(queue, queue_limits[i])))
            add_limit(all, "queue", text_of(queue, "name"), queue_limits[i]);
}

/* ---- lists of the metadata ---- */

static bool is_empty(struct slice value)
{
    struct scan_members inner = scan_members(value);
    struct slice key, element;
    switch (scan_type(value)) {
    case SCAN_NONE:
    case SCAN_NULL:
    case SCAN_FALSE: return true;
    case SCAN_OBJECT: return !scan_next_member(&inner, &key, &element);
    case SCAN_ARRAY: return !scan_next_element(&inner, &element);
    default: return false;
    }
}

typedef void note_fn(struct unsupported *all, struct slice name);

/* Calls note for the name of each element, until the names are full. For another type that
 * is not empty, calls it once, with an empty name. A list may have millions of elements. */
static void note_each(struct unsupported *all, const struct buf *names, struct slice list,
                      const char *member, note_fn *note)
{
    struct scan_members elements = scan_members(list);
    struct slice element;
    if (scan_type(list) != SCAN_ARRAY) {
        if (!is_empty(list))
            note(all, SLICE(""));
        return;
    }
    while (names->len <= NAMES_BYTES_MAX && scan_next_element(&elements, &element)) {
        struct buf name = { 0 };
        scan_string(scan_type(element) == SCAN_OBJECT ? scan_member(element, member)
                                                      : element,
                    &name);
        note(all, buf_slice(&name));
        buf_finish(&name);
    }
}

static void note_prompt(struct unsupported *all, struct slice name)
{
    add_name(&all->prompts, name);
}

static void note_webhook(struct unsupported *all, struct slice name)
{
    add_name(&all->webhooks, name);
}

void unsupported_note_prompts(struct unsupported *all, struct slice list)
{
    note_each(all, &all->prompts, list, "id", note_prompt);
}

void unsupported_note_webhooks(struct unsupported *all, struct slice list)
{
    note_each(all, &all->webhooks, list, "id", note_webhook);
}

/* ---- the consequences ---- */

struct bytes *unsupported_refusal(const struct unsupported *all)
{
    struct buf text = { 0 };
    if (!all->limits.len)
        return NULL;
    buf_add_text(&text, "these limits are not supported and would be exceeded: ");
    buf_add(&text, buf_slice(&all->limits));
    buf_add_text(&text, "; remove them, or use the concurrency and the gates of a task");
    struct bytes *refusal = buf_to_bytes(&text);
    buf_finish(&text);
    return refusal;
}

static void add_warning(struct buf *out, const char *feature, const struct buf *names,
                        const char *message)
{
    if (!names->len)
        return;
    buf_add_char(out, out->len ? ',' : '[');
    buf_add_char(out, '{');
    members_add_text(out, "feature", slice_of(feature));
    members_add_name(out, "names");
    buf_add_char(out, '[');
    buf_add(out, buf_slice(names));
    buf_add_char(out, ']');
    members_add_text(out, "message", slice_of(message));
    buf_add_char(out, '}');
}

struct bytes *unsupported_warnings(const struct unsupported *all)
{
    struct buf out = { 0 };
    add_warning(&out, "prompts", &all->prompts,
                "This gateway does not have prompts: a run that resolves one fails");
    add_warning(
        &out, "sessions and agents that chat", &all->agents,
        "This gateway does not have sessions and agents that chat: a run that chats "
        "fails");
    add_warning(
        &out, "endpoints for webhooks", &all->webhooks,
        "This gateway does not have endpoints for webhooks: no event triggers these "
        "tasks");
    if (!out.len)
        return NULL;
    buf_add_char(&out, ']');
    struct bytes *warnings = buf_to_bytes(&out);
    buf_finish(&out);
    return warnings;
}
