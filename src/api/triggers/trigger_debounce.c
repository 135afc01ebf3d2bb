/* trigger_debounce.c - reads the debounce option: a key, a delay, a mode and a limit. */
#include "api/triggers/trigger_reading.h"
#include "base/json/members.h"
#include "base/json/scan.h"
#include "core/model/debounce.h"

enum { KEY_MAX = 512 /* characters */, DURATION_MAX = 128, SHORTEST_MS = 1000 };

enum debounce_member { KEY, DELAY, MODE, MAX_DELAY, MEMBERS };

static const char *const member_names[MEMBERS + 1] = { "key", "delay", "mode", "maxDelay",
                                                       NULL };

static enum err read_debounce_key(struct trigger_reading *r, struct slice value)
{
    struct slice key;
    r->name = "debounce.key";
    enum err err = reading_text(r, value, KEY_MAX, &key);
    if (err)
        return err;
    if (!key.len)
        return reading_mistake(r, "String must contain at least 1 character(s)");
    run_rare_edit(&r->item->run)->waits = debounce_mark(key);
    return OK;
}

static enum err read_duration(struct trigger_reading *r, struct slice value, int64_t *ms)
{
    struct slice text;
    int64_t at;
    enum err err = reading_text(r, value, DURATION_MAX, &text);
    if (err)
        return err;
    if (text_to_duration_ms(text, ms)) {
        bool is_date = !text_to_moment(text, r->place->now_ms, &at);
        return explain(r->why, ERR_INVALID,
                       "Validation error: %s '%.*s' must be a duration%s; send text like "
                       "30s, 5m or 2h30m, with the units w, d, h, m and s, at "
                       "\"options.%s\"",
                       r->name, SLICE_ARG(text_clip(text)), is_date ? ", not a date" : "",
                       r->name);
    }
    if (*ms < SHORTEST_MS)
        return explain(r->why, ERR_INVALID,
                       "Validation error: %s '%.*s' is too short; send 1s or more, at "
                       "\"options.%s\"",
                       r->name, SLICE_ARG(text_clip(text)), r->name);
    return OK;
}

static enum err read_mode(struct trigger_reading *r, struct slice value, bool *is_trailing)
{
    struct slice text = SLICE("leading");
    r->name = "debounce.mode";
    enum err err = value.ptr ? reading_text(r, value, DURATION_MAX, &text) : OK;
    if (err)
        return err;
    *is_trailing = slice_is(text, "trailing");
    return *is_trailing || slice_is(text, "leading")
               ? OK
               : reading_mistake(r, "Expected leading or trailing");
}

static enum err read_max_delay(struct trigger_reading *r, struct slice value,
                               struct debounce *debounce)
{
    r->name = "debounce.maxDelay";
    if (!value.ptr)
        return OK;
    enum err err = read_duration(r, value, &debounce->max_delay_ms);
    if (err)
        return err;
    return debounce->max_delay_ms > debounce->delay_ms
               ? OK
               : reading_mistake(r, "maxDelay must be longer than debounce.delay");
}

static enum err read_members(struct trigger_reading *r, struct debounce *debounce)
{
    struct slice members[MEMBERS];
    members_find(r->debounce, member_names, MEMBERS, members);
    reading_report_others(r, "debounce.", r->debounce, member_names);
    enum err err = read_debounce_key(r, members[KEY]);
    r->name = "debounce.delay";
    if (!err)
        err = read_duration(r, members[DELAY], &debounce->delay_ms);
    if (!err)
        err = read_mode(r, members[MODE], &debounce->is_trailing);
    if (!err)
        err = read_max_delay(r, members[MAX_DELAY], debounce);
    return err;
}

enum err reading_take_debounce(struct trigger_reading *r)
{
    struct debounce debounce = { .names_machine = r->has_machine };
    r->name = "debounce";
    if (!r->debounce.ptr)
        return OK;
    if (scan_type(r->debounce) != SCAN_OBJECT)
        return reading_mistake(r, "Expected object");
    enum err err = read_members(r, &debounce);
    if (err)
        return err;
    struct run_rare *rare = run_rare_edit(&r->item->run);
    if (!rare->delayed_until)
        rare->delayed_until = r->place->now_ms + debounce.delay_ms;
    r->item->debounce = debounce;
    return OK;
}
