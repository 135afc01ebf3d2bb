/* trigger_needs.c - reads which limits and gates a trigger names for its run. */
#include "api/triggers/trigger_reading.h"

#include <stdio.h>
#include <string.h>

#include "base/json/scan.h"
#include "core/fleet/versions.h"

enum {
    LIMITS_MAX = 2,
    GATES_MAX = 3,
    GATE_TEXT_MAX = 128, /* characters of a name, of a key */
};

typedef enum err read_need_fn(struct trigger_reading *r, struct slice element);

static enum err read_each(struct trigger_reading *r, struct slice value, int most,
                          read_need_fn *read_need)
{
    struct scan_members elements = scan_members(value);
    struct slice element;
    enum err err = OK;
    char too_many[64];
    if (scan_type(value) != SCAN_ARRAY)
        return reading_mistake(r, "Expected array");
    snprintf(too_many, sizeof(too_many), "Array must contain at most %d element(s)", most);
    for (int count = 0; !err && scan_next_element(&elements, &element); count++)
        err = count == most ? reading_mistake(r, too_many) : read_need(r, element);
    return err;
}

/* ---- limits ---- */

/* Returns true if the list of limits has this one name. */
static bool has_limit(const struct buf *names, struct slice name)
{
    return names->len == name.len + sizeof("\"\"") - 1 &&
           !memcmp(names->ptr + 1, name.ptr, name.len);
}

/* Adds a name to the list of limits, unless it is there. */
static enum err read_limit(struct trigger_reading *r, struct slice value)
{
    struct slice name;
    enum err err = reading_text(r, value, GATE_TEXT_MAX, &name);
    if (err)
        return err;
    if (!limits_is_name(name))
        return reading_mistake(r, "Expected names of 1 to 128 letters, digits, - and _");
    if (!limits_figures(r->place->queues, name).registered)
        return explain(r->why, ERR_RULE,
                       "No version declares the concurrency limit '%.*s'; declare it with "
                       "concurrencyLimit()",
                       SLICE_ARG(name));
    if (has_limit(&r->limits, name))
        return OK;
    buf_add_text(&r->limits, r->limits.len ? "," : "");
    buf_add_json(&r->limits, name);
    return OK;
}

enum err reading_concurrency(struct trigger_reading *r, struct slice value)
{
    r->has_limits = true;
    return read_each(r, value, LIMITS_MAX, read_limit);
}

/* ---- gates ---- */

/* Reads a member of a gate. Mistakes in it are reported at this name. */
static enum err read_short(struct trigger_reading *r, const char *name, struct slice value,
                           struct slice *text)
{
    const char *array = r->name;
    r->name = name;
    enum err err = reading_text(r, value, GATE_TEXT_MAX, text);
    if (!err && !text->len)
        err = reading_mistake(r, "String must contain at least 1 character(s)");
    r->name = array;
    return err;
}

/* The queue of a task exists even if the task names another one. */
static bool is_queue(const struct trigger_place *place, struct slice name)
{
    static const struct slice prefix = SLICE("task/");
    return queues_is_registered(place->queues, name) ||
           (slice_starts(name, prefix.ptr) &&
            workers_task(place->workers, slice_from(name, prefix.len)));
}

static enum err read_gate(struct trigger_reading *r, struct slice gate)
{
    static const char *const known[] = { "queue", "concurrencyKey", NULL };
    struct slice text, key = scan_member(gate, "concurrencyKey");
    if (scan_type(gate) != SCAN_OBJECT)
        return reading_mistake(r, "Expected array of objects");
    enum err err = read_short(r, "gates[].queue", scan_member(gate, "queue"), &text);
    if (err)
        return err;
    if (!is_queue(r->place, text))
        return explain(r->why, ERR_RULE,
                       "No version declares the queue '%.*s', which options.gates names; "
                       "declare it with queue()",
                       SLICE_ARG(text_clip(text)));
    buf_add_text(&r->gates, r->gates.len ? ",{\"queue\":" : "{\"queue\":");
    buf_add_json(&r->gates, text);
    if (key.ptr && !(err = read_short(r, "gates[].concurrencyKey", key, &text))) {
        buf_add_text(&r->gates, ",\"key\":");
        buf_add_json(&r->gates, text);
    }
    buf_add_char(&r->gates, '}');
    reading_report_others(r, "gates[].", gate, known);
    return err;
}

enum err reading_gates(struct trigger_reading *r, struct slice value)
{
    r->has_gates = true;
    return read_each(r, value, GATES_MAX, read_gate);
}

/* ---- both ---- */

void reading_take_needs(struct trigger_reading *r)
{
    if (r->has_limits || r->has_gates)
        run_rare_edit(&r->item->run)->limits = versions_needs_text(
            r->has_limits ? &r->limits : NULL, r->has_gates ? &r->gates : NULL);
}
