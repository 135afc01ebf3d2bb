/* schedule_document.c - the stored document of a schedule: written, read and copied. */
#include "api/schedules/schedule_state.h"
#include "base/json/members.h"
#include "base/json/scan.h"

/* ---- copies ---- */

static const size_t texts[] = {
    offsetof(struct schedule_facts, task),        offsetof(struct schedule_facts, cron),
    offsetof(struct schedule_facts, timezone),    offsetof(struct schedule_facts, window),
    offsetof(struct schedule_facts, external_id), offsetof(struct schedule_facts, key),
};

static const char *const text_names[] = { "task",   "cron",       "timezone",
                                          "window", "externalId", "deduplicationKey" };

enum { TEXTS = sizeof(texts) / sizeof(texts[0]), TEXTS_NEEDED = 3 };

static struct bytes **text_at(const struct schedule_facts *facts, size_t i)
{
    return (struct bytes **)((char *)facts + texts[i]);
}

void schedule_facts_copy(struct schedule_facts *copy, const struct schedule_facts *facts)
{
    *copy = *facts;
    for (size_t i = 0; i < TEXTS; i++)
        bytes_ref(*text_at(copy, i));
}

void schedule_facts_finish(struct schedule_facts *facts)
{
    for (size_t i = 0; i < TEXTS; i++)
        bytes_unref(*text_at(facts, i));
    *facts = (struct schedule_facts){ 0 };
}

/* ---- changes ---- */

void schedule_facts_set_times(struct schedule_facts *facts, struct bytes *cron,
                              struct bytes *timezone, int64_t now_ms)
{
    bool same = slice_equal(bytes_slice(facts->cron), bytes_slice(cron)) &&
                slice_equal(bytes_slice(facts->timezone), bytes_slice(timezone));
    bytes_set(&facts->cron, cron);
    bytes_set(&facts->timezone, timezone);
    if (same)
        return;
    facts->since = now_ms;
    if (facts->fired_at > now_ms)
        facts->fired_at = 0;
}

/* ---- JSON ---- */

struct bytes *schedule_facts_write(const struct schedule_facts *facts)
{
    struct buf out = { 0 };
    buf_print(&out, "{\"declarative\":%s,\"active\":%s",
              facts->is_declarative ? "true" : "false",
              facts->is_active ? "true" : "false");
    for (size_t i = 0; i < TEXTS; i++)
        members_add_text(&out, text_names[i], bytes_slice(*text_at(facts, i)));
    buf_print(&out, ",\"createdAt\":%lld,\"since\":%lld,\"firedAt\":%lld}",
              (long long)facts->created_at, (long long)facts->since,
              (long long)facts->fired_at);
    struct bytes *body = buf_to_bytes(&out);
    buf_finish(&out);
    return body;
}

static bool read_text(struct slice body, size_t i, struct schedule_facts *facts)
{
    struct buf text = { 0 };
    struct slice value = scan_member(body, text_names[i]);
    bool good = value.ptr ? scan_string(value, &text) : i >= TEXTS_NEEDED;
    if (good && value.ptr)
        *text_at(facts, i) = bytes_create_shared(buf_slice(&text));
    buf_finish(&text);
    return good;
}

enum err schedule_facts_read(struct slice body, struct schedule_facts *facts)
{
    struct schedule_facts read = { 0 };
    bool good = scan_is_json(body) && scan_type(body) == SCAN_OBJECT;
    for (size_t i = 0; good && i < TEXTS; i++)
        good = read_text(body, i, &read);
    good = good && members_number(body, "createdAt", &read.created_at) &&
           members_number(body, "since", &read.since) &&
           members_number(body, "firedAt", &read.fired_at);
    if (!good) {
        schedule_facts_finish(&read);
        return ERR_INVALID;
    }
    read.is_declarative = members_is_true(body, "declarative");
    read.is_active = members_is_true(body, "active");
    *facts = read;
    return OK;
}
