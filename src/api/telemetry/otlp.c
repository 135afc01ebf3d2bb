/* otlp.c - reads records from OTLP JSON bodies and converts them to events.
 *
 * Finding the end of a part of the body means scanning it, and parts are nested. So each
 * call finds one part, and the next call opens it.
 *
 * Attributes that the SDK adds to identify a record's origin (ctx.…, $metadata.…) are read
 * but not stored: the run is known by then. */
#include "api/telemetry/otlp.h"

#include <strings.h>

#include "base/json/members.h"

#define TOO_LONG "the attributes were too long (max 128 KiB)"

#define TOO_LONG_BODY "\"the body was too long (max 128 KiB)\""
#define TOO_MANY "there were too many attributes (max 4096)"

enum {
    MESSAGE_MAX = 8192, /* bytes, without the note that it was cut */
    MS_NS = 1000000,
    ATTRIBUTES_AT_ONCE = 256, /* of a resource */
    ATTRIBUTES_MAX = 4096,    /* of a record or an event; the SDK sends at most 1024 */
    EVENTS_MAX = 1000,        /* of a span */
    MEMBERS_MAX = 1000, /* of any object that OTLP defines; further ones are ignored */
};

/* ---- values ---- */

/* Reads a number; OTLP sends 64-bit numbers as text. */
static int64_t number_of(struct slice value)
{
    int64_t number = 0;
    struct slice text = scan_type(value) == SCAN_STRING ? scan_unquoted(value) : value;
    return text_to_i64(text, &number) ? 0 : number;
}

static void add_value(struct buf *out, struct slice value, unsigned depth);

static void add_list(struct buf *out, struct slice list, unsigned depth)
{
    struct scan_members all = scan_members(scan_member(list, "values"));
    struct slice one;
    buf_add_char(out, '[');
    for (bool more = false; scan_next_element(&all, &one); more = true) {
        if (more)
            buf_add_char(out, ',');
        add_value(out, one, depth + 1);
    }
    buf_add_char(out, ']');
}

static void add_map(struct buf *out, struct slice map, unsigned depth)
{
    struct scan_members all = scan_members(scan_member(map, "values"));
    struct slice one;
    bool more = false;
    buf_add_char(out, '{');
    while (scan_next_element(&all, &one)) {
        struct slice key = scan_member(one, "key");
        if (scan_type(key) != SCAN_STRING)
            continue;
        if (more)
            buf_add_char(out, ',');
        buf_add(out, key);
        buf_add_char(out, ':');
        add_value(out, scan_member(one, "value"), depth + 1);
        more = true;
    }
    buf_add_char(out, '}');
}

/* Adds a value as plain JSON: {"stringValue":"x"} becomes "x". */
static void add_value(struct buf *out, struct slice value, unsigned depth)
{
    struct scan_members all =
        scan_members(scan_type(value) == SCAN_OBJECT ? value : SLICE("{}"));
    struct slice kind, inner;

    if (depth > OTLP_VALUE_DEPTH || !scan_next_member(&all, &kind, &inner)) {
        buf_add_text(out, "null");
    } else if (slice_is(kind, "intValue")) {
        buf_add_number(out, number_of(inner));
    } else if (slice_is(kind, "arrayValue")) {
        add_list(out, inner, depth);
    } else if (slice_is(kind, "kvlistValue")) {
        add_map(out, inner, depth);
    } else if (scan_type(inner) == SCAN_OBJECT || scan_type(inner) == SCAN_ARRAY) {
        buf_add_text(out, "null");
    } else {
        buf_add(out, inner);
    }
}

/* ---- attributes ---- */

/* Takes an attribute that identifies the record's origin. Returns false if the attribute
 * belongs to the record itself. */
static bool take_fact(struct otlp_facts *facts, struct slice name, struct slice value)
{
    bool ours = slice_starts(name, "$metadata.");
    if (ours)
        name = slice_from(name, strlen("$metadata."));
    if (slice_is(name, "ctx.run.id"))
        facts->run = scan_unquoted(scan_member(value, "stringValue"));
    else if (slice_is(name, "ctx.attempt.number"))
        facts->attempt = number_of(scan_member(value, "intValue"));
    else if (slice_is(name, "worker.version"))
        facts->version = scan_unquoted(scan_member(value, "stringValue"));
    else if (slice_is(name, "$span.partial"))
        facts->partial = scan_type(scan_member(value, "boolValue")) == SCAN_TRUE;
    else if (slice_is(name, "$span.span_id"))
        facts->partial_of = scan_unquoted(scan_member(value, "stringValue"));
    else
        return ours || slice_starts(name, "ctx.");
    return true;
}

/* Reads an attribute; out NULL: only into facts. Ignores one that is longer than a record
 * may be, because each search for a member scans it. */
static void read_attribute(struct slice one, struct otlp_facts *facts, struct buf *out)
{
    if (one.len > OTLP_RECORD_MAX)
        return;
    struct slice key = scan_member(one, "key"), value = scan_member(one, "value");
    if (scan_type(key) != SCAN_STRING || take_fact(facts, scan_unquoted(key), value) ||
        !out)
        return;
    if (out->ptr[out->len - 1] != '{')
        buf_add_char(out, ',');
    buf_add(out, key);
    buf_add_char(out, ':');
    add_value(out, value, 0);
}

/* Reads attributes. Returns false if there are more than ATTRIBUTES_MAX. */
static bool read_attributes(struct slice attributes, struct otlp_facts *facts,
                            struct buf *out)
{
    struct scan_members all = scan_members(attributes);
    struct slice one;
    for (unsigned i = 0; scan_next_element(&all, &one); i++) {
        if (i == ATTRIBUTES_MAX)
            return false;
        read_attribute(one, facts, out);
    }
    return true;
}

/* ---- the records of a body ---- */

/* Returns a member of a body, resource or scope, which may have any number of other
 * members. */
static struct slice part_of(struct slice object, const char *name)
{
    struct slice value;
    members_find_few(object, MEMBERS_MAX, &name, 1, &value);
    return value;
}

/* Opens a resource in one scan. */
static void open_resource(struct otlp *otlp)
{
    const char *const names[] = { "resource", otlp->logs ? "scopeLogs" : "scopeSpans" };
    struct slice parts[2];
    members_find_few(otlp->resource, MEMBERS_MAX, names, 2, parts);
    otlp->shared = (struct otlp_facts){ 0 };
    otlp->resource = (struct slice){ 0 };
    otlp->about = parts[0];
    otlp->scopes = scan_members(parts[1]);
}

static void open_about(struct otlp *otlp)
{
    otlp->attributes = scan_members(part_of(otlp->about, "attributes"));
    otlp->about = (struct slice){ 0 };
}

static void open_scope(struct otlp *otlp)
{
    const char *records = otlp->logs ? "logRecords" : "spans";
    otlp->records = scan_members(part_of(otlp->scope, records));
    otlp->scope = (struct slice){ 0 };
}

static void open_body(struct otlp *otlp)
{
    const char *resources = otlp->logs ? "resourceLogs" : "resourceSpans";
    otlp->resources = scan_members(part_of(otlp->body, resources));
    otlp->body = (struct slice){ 0 };
}

/* Opens the part that was found last. Returns false if there is none. */
static bool open_found(struct otlp *otlp)
{
    if (otlp->body.ptr)
        open_body(otlp);
    else if (otlp->resource.ptr)
        open_resource(otlp);
    else if (otlp->about.ptr)
        open_about(otlp);
    else if (otlp->scope.ptr)
        open_scope(otlp);
    else
        return false;
    return true;
}

/* Reads some attributes of the resource. Returns false if more are left. */
static bool read_shared(struct otlp *otlp)
{
    struct slice one;
    for (int i = 0; scan_next_element(&otlp->attributes, &one); i++) {
        read_attribute(one, &otlp->shared, NULL);
        if (i == ATTRIBUTES_AT_ONCE)
            return false;
    }
    return true;
}

void otlp_begin(struct otlp *otlp, struct slice body, bool logs)
{
    *otlp = (struct otlp){ .logs = logs, .body = body };
}

bool otlp_next(struct otlp *otlp, struct slice *record)
{
    *record = (struct slice){ 0 };
    if (open_found(otlp) || !read_shared(otlp))
        return true;
    bool found = scan_next_element(&otlp->records, record) ||
                 scan_next_element(&otlp->scopes, &otlp->scope) ||
                 scan_next_element(&otlp->resources, &otlp->resource);
    otlp->cut = found && otlp->steps++ >= OTLP_COUNTED_MAX;
    return found && !otlp->cut;
}

/* ---- events ---- */

static bool is_span_id(struct slice id)
{
    for (size_t i = 0; i < id.len; i++)
        if (!memchr("0123456789abcdefABCDEF", id.ptr[i], 22))
            return false;
    return id.len == OTLP_SPAN_LEN;
}

/* Appends the text of a string; if it has more than MESSAGE_MAX bytes, only its beginning.
 * One byte of text takes at most six raw bytes. Returns the size of the whole text; of a
 * very long one, which is not decoded, its size as sent. */
static size_t add_beginning(struct buf *text, struct slice raw)
{
    struct scan_text escapes = { 0 };
    if (raw.len <= 8 * MESSAGE_MAX) {
        scan_unescape(raw, text);
        return text->len;
    }
    size_t whole = raw.len;
    raw.len = 8 * MESSAGE_MAX;
    scan_text_feed(&escapes, raw, text); /* an incomplete escape adds nothing */
    return whole;
}

/* Cuts the text between two characters, and marks this at its end. */
static void cut(struct buf *text, size_t whole)
{
    size_t len = MESSAGE_MAX;
    while (len && ((unsigned char)text->ptr[len] & 0xC0) == 0x80)
        len--;
    text->len = len;
    buf_add_cut(text, whole);
}

static void add_name(struct buf *out, struct slice value)
{
    struct buf text = { 0 };
    size_t whole = 0;
    if (scan_type(value) == SCAN_STRING)
        whole = add_beginning(&text, scan_unquoted(value));
    else if (scan_type(value) != SCAN_NONE)
        buf_add(&text, slice_trim(value));
    if (text.len > MESSAGE_MAX)
        cut(&text, whole > text.len ? whole : text.len);
    members_add_text(out, "message", buf_slice(&text));
    buf_finish(&text);
}

/* Adds the events of a span, which are mostly exceptions. */
static void add_events(struct buf *out, struct slice events)
{
    struct scan_members all = scan_members(events);
    struct slice one;
    members_add_name(out, "events");
    buf_add_char(out, '[');
    for (unsigned i = 0; i < EVENTS_MAX && scan_next_element(&all, &one); i++) {
        struct otlp_facts facts = { 0 };
        struct slice name = scan_member(one, "name");
        if (out->ptr[out->len - 1] != '[')
            buf_add_char(out, ',');
        buf_add_text(out, "{\"name\":");
        buf_add(out, scan_type(name) == SCAN_STRING ? name : SLICE("\"\""));
        members_add_time(out, "time", number_of(scan_member(one, "timeUnixNano")) / MS_NS);
        buf_add_text(out, ",\"properties\":{");
        read_attributes(scan_member(one, "attributes"), &facts, out);
        buf_add_text(out, "}}");
    }
    buf_add_char(out, ']');
}

/* The members of a record, found in one scan. */
enum record_member {
    ATTRIBUTES,
    SPAN_ID,
    PARENT, /* for a log: the span that it belongs to */
    TIME,
    END,
    STATUS,
    NAME,
    EVENTS,
    SEVERITY_TEXT,
    SEVERITY_NUMBER,
    BODY,
    RECORD_MEMBERS
};

static void find_members(struct slice record, bool is_log,
                         struct slice values[RECORD_MEMBERS])
{
    const char *const names[RECORD_MEMBERS] = {
        [ATTRIBUTES] = "attributes",
        [SPAN_ID] = "spanId",
        [PARENT] = is_log ? "spanId" : "parentSpanId",
        [TIME] = is_log ? "timeUnixNano" : "startTimeUnixNano",
        [END] = "endTimeUnixNano",
        [STATUS] = "status",
        [NAME] = "name",
        [EVENTS] = "events",
        [SEVERITY_TEXT] = "severityText",
        [SEVERITY_NUMBER] = "severityNumber",
        [BODY] = "body",
    };
    members_find_few(record, MEMBERS_MAX, names, RECORD_MEMBERS, values);
}

static const char *level_of(const struct slice *values)
{
    static const char *const levels[] = {
        "TRACE", "DEBUG", "LOG", "INFO", "WARN", "ERROR"
    };
    struct slice text = scan_unquoted(values[SEVERITY_TEXT]);
    int64_t number = number_of(values[SEVERITY_NUMBER]);
    for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++)
        if (text.len == strlen(levels[i]) && !strncasecmp(text.ptr, levels[i], text.len))
            return levels[i];
    return number >= 17   ? "ERROR"
           : number >= 13 ? "WARN"
           : number >= 9  ? "INFO"
           : number >= 5  ? "DEBUG"
                          : "LOG";
}

static bool is_long(struct slice record)
{
    return record.len > OTLP_RECORD_MAX;
}

static void add_span(struct buf *out, const struct slice *values, bool is_cut,
                     const struct otlp_facts *facts, int64_t start_ns)
{
    int64_t end_ns = number_of(values[END]);
    int64_t code = number_of(part_of(values[STATUS], "code"));
    add_name(out, values[NAME]);
    members_add_number(out, "ns",
                       facts->partial || end_ns < start_ns ? 0 : end_ns - start_ns);
    members_add_text(out, "level", SLICE("TRACE"));
    if (code == 2)
        members_add_bool(out, "isError", true);
    if (!is_cut)
        add_events(out, values[EVENTS]);
}

static void add_log(struct buf *out, const struct slice *values)
{
    struct slice text = part_of(values[BODY], "stringValue");
    const char *level = level_of(values);
    struct buf value = { 0 };
    if (scan_type(text) != SCAN_STRING && is_long(values[BODY])) {
        text = SLICE(TOO_LONG_BODY);
    } else if (scan_type(text) != SCAN_STRING) {
        add_value(&value, values[BODY], 0);
        text = buf_slice(&value);
    }
    add_name(out, text);
    buf_finish(&value);
    members_add_number(out, "ns", 0);
    members_add_text(out, "level", slice_of(level));
    if (!strcmp(level, "ERROR"))
        members_add_bool(out, "isError", true);
}

static void choose_span(const struct otlp *otlp, const struct slice *values,
                        const struct otlp_facts *facts, char span[OTLP_SPAN_LEN + 1])
{
    struct slice id = facts->partial ? facts->partial_of : scan_unquoted(values[SPAN_ID]);
    if (otlp->logs || !is_span_id(id))
        text_random(span, OTLP_SPAN_LEN, "0123456789abcdef");
    else
        memcpy(span, id.ptr, OTLP_SPAN_LEN);
    span[OTLP_SPAN_LEN] = '\0';
}

static void add_record(const struct otlp *otlp, const struct slice *values, bool is_cut,
                       const struct otlp_facts *facts, struct slice properties,
                       struct trace_event *event, struct buf *out)
{
    struct slice parent = scan_unquoted(values[PARENT]);
    int64_t start_ns = number_of(values[TIME]);

    event->started_ms = start_ns / MS_NS;
    buf_add_char(out, '{');
    members_add_text(out, "spanId", slice_of(event->span));
    if (is_span_id(parent))
        members_add_text(out, "parentId", parent);
    members_add_number(out, "at", event->started_ms);
    if (otlp->logs)
        add_log(out, values);
    else
        add_span(out, values, is_cut, facts, start_ns);
    if (facts->partial)
        members_add_bool(out, "isPartial", true);
    if (facts->attempt > 0)
        members_add_number(out, "attemptNumber", facts->attempt);
    if (facts->version.len && !memchr(facts->version.ptr, '\\', facts->version.len))
        members_add_text(out, "workerVersion", facts->version);
    members_add_json(out, "properties", properties);
    buf_add_char(out, '}');
}

enum err otlp_read(const struct otlp *otlp, struct slice record, char run_id[ID_MAX],
                   struct trace_event *event)
{
    struct buf properties = { 0 }, out = { 0 };
    struct otlp_facts facts = otlp->shared;
    struct slice values[RECORD_MEMBERS];
    bool is_cut = is_long(record);

    if (scan_type(record) != SCAN_OBJECT)
        return ERR_INVALID;
    find_members(record, otlp->logs, values);
    buf_add_char(&properties, '{');
    bool is_whole =
        read_attributes(values[ATTRIBUTES], &facts, is_cut ? NULL : &properties);
    if (is_cut || !is_whole)
        members_add_text(&properties, "cut", is_cut ? SLICE(TOO_LONG) : SLICE(TOO_MANY));
    buf_add_char(&properties, '}');
    if (!facts.run.len || facts.run.len >= ID_MAX) {
        buf_finish(&properties);
        return ERR_NOT_FOUND;
    }
    snprintf(run_id, ID_MAX, "%.*s", SLICE_ARG(facts.run));
    *event = (struct trace_event){ .partial = facts.partial, .log = otlp->logs };
    choose_span(otlp, values, &facts, event->span);
    add_record(otlp, values, is_cut, &facts, buf_slice(&properties), event, &out);
    event->json = buf_to_bytes(&out);
    buf_finish(&properties);
    buf_finish(&out);
    return OK;
}
