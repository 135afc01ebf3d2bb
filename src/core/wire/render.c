/* render.c - which fields a row has, and their values.
 *
 *   run ─► the fields that this row needs ─► members ─► encode_json | encode_msgpack
 *
 * A table has the place of each field in struct run, and its kind. In a whole row, a
 * required field that is unset is null, and any other is left out. In a partial row, unset
 * fields are null. */
#include "core/wire/render.h"

#include "base/json/scan.h"
#include "core/wire/encode.h"
#include "core/wire/shape.h"

enum {
    /* In every whole row, even if unset. */
    FIELDS_REQUIRED = 1 << FIELD_ID | 1 << FIELD_TASK | 1 << FIELD_STATUS |
                      1 << FIELD_CREATED_AT | 1 << FIELD_UPDATED_AT | 1 << FIELD_TAGS |
                      1 << FIELD_PAYLOAD | 1 << FIELD_NUMBER | 1 << FIELD_DURATION_MS |
                      1 << FIELD_COST | 1 << FIELD_BASE_COST | 1 << FIELD_IS_TEST,
    /* These never change, or else whole_rev moves too. */
    FIELDS_FIXED = 1 << FIELD_ID | 1 << FIELD_TASK | 1 << FIELD_CREATED_AT |
                   1 << FIELD_BATCH_ID | 1 << FIELD_NUMBER | 1 << FIELD_IS_TEST,
    FIELDS_WITH_WHOLE = 1 << FIELD_TAGS | 1 << FIELD_PAYLOAD,
    FIELDS_WITH_METADATA = 1 << FIELD_METADATA,
    FIELDS_WITH_OUTPUT = 1 << FIELD_OUTPUT | 1 << FIELD_ERROR,
    FIELDS_SMALL = FIELDS_ALL & ~(FIELDS_FIXED | FIELDS_WITH_WHOLE | FIELDS_WITH_METADATA |
                                  FIELDS_WITH_OUTPUT),
    FIELDS_OF_DELTA = 1 << FIELD_STATUS | 1 << FIELD_UPDATED_AT, /* changed or not */
};

enum source_kind {
    FROM_ID,
    FROM_STATUS,
    FROM_IS_TEST,
    FROM_TEXT,   /* struct bytes * */
    FROM_TIME,   /* int64_t; 0: unset */
    FROM_NUMBER, /* uint32_t */
    FROM_COUNT,  /* uint16_t; 0: unset */
    FROM_REAL,   /* double */
    FROM_TAGS,
    FROM_PACKET, /* struct bytes *, and one that holds its type */
    FROM_METADATA,
    FROM_ERROR,
    FROM_JSON,
};

/* clang-format off */
static const struct field_source {
    enum source_kind kind;
    size_t offset; /* for run_field */
    size_t type;   /* for a packet: the offset of its type */
} sources[FIELD_COUNT] = {
    [FIELD_ID] =              { FROM_ID,       0, 0 },
    [FIELD_TASK] =            { FROM_TEXT,     offsetof(struct run, task), 0 },
    [FIELD_STATUS] =          { FROM_STATUS,   0, 0 },
    [FIELD_CREATED_AT] =      { FROM_TIME,     offsetof(struct run, created_at), 0 },
    [FIELD_UPDATED_AT] =      { FROM_TIME,     offsetof(struct run, updated_at), 0 },
    [FIELD_TAGS] =            { FROM_TAGS,     0, 0 },
    [FIELD_BATCH_ID] =        { FROM_TEXT,     offsetof(struct run, batch), 0 },
    [FIELD_PAYLOAD] =         { FROM_PACKET,   offsetof(struct run, payload),
                                               rare_offset(payload_type) },
    [FIELD_OUTPUT] =          { FROM_PACKET,   offsetof(struct run, output),
                                               rare_offset(output_type) },
    [FIELD_NUMBER] =          { FROM_NUMBER,   offsetof(struct run, number), 0 },
    [FIELD_DURATION_MS] =     { FROM_NUMBER,   offsetof(struct run, usage_ms), 0 },
    [FIELD_COST] =            { FROM_REAL,     offsetof(struct run, cost_cents), 0 },
    [FIELD_BASE_COST] =       { FROM_REAL,     offsetof(struct run, base_cost_cents), 0 },
    [FIELD_IDEMPOTENCY_KEY] = { FROM_TEXT,     rare_offset(idempotency_shown), 0 },
    [FIELD_EXPIRED_AT] =      { FROM_TIME,     rare_offset(expired_at), 0 },
    [FIELD_TTL] =             { FROM_TEXT,     rare_offset(ttl), 0 },
    [FIELD_FINISHED_AT] =     { FROM_TIME,     offsetof(struct run, finished_at), 0 },
    [FIELD_STARTED_AT] =      { FROM_TIME,     offsetof(struct run, started_at), 0 },
    [FIELD_DELAYED_UNTIL] =   { FROM_TIME,     rare_offset(delayed_until), 0 },
    [FIELD_QUEUED_AT] =       { FROM_TIME,     offsetof(struct run, queued_at), 0 },
    [FIELD_METADATA] =        { FROM_METADATA, offsetof(struct run, metadata), 0 },
    [FIELD_ERROR] =           { FROM_ERROR,    offsetof(struct run, error), 0 },
    [FIELD_IS_TEST] =         { FROM_IS_TEST,  0, 0 },
    [FIELD_VERSION] =         { FROM_TEXT,     offsetof(struct run, worker_version), 0 },
    [FIELD_ATTEMPT_COUNT] =   { FROM_COUNT,    offsetof(struct run, attempt), 0 },
    [FIELD_STREAMS] =         { FROM_JSON,     rare_offset(streams), 0 },
    [FIELD_QUEUE] =           { FROM_TEXT,     offsetof(struct run, queue), 0 },
};
/* clang-format on */

/* ---- where a field is ---- */

static struct bytes *bytes_at(const struct run *run, size_t offset)
{
    return *(struct bytes *const *)run_field(run, offset);
}

/* ---- packets ---- */

/* Makes the value of a packet. Content that is not the JSON that its type claims becomes a
 * string, so that it cannot break the message around it. */
static bool packet_value(struct bytes *bytes, struct slice type, struct value *value)
{
    struct slice content = bytes_slice(bytes);
    if (!content.len || slice_is(type, "application/store"))
        return false;
    bool is_super = slice_is(type, "application/super+json");
    bool is_json = is_super || !type.len || slice_is(type, "application/json");
    if (!is_json || !scan_bytes_are_json(bytes)) {
        *value = (struct value){ VALUE_QUOTED, bytes, .text = content };
        return true;
    }
    struct slice json = is_super ? scan_member(content, "json") : slice_trim(content);
    *value = (struct value){ VALUE_JSON, bytes, .text = json };
    return json.len > 0;
}

bool render_packet(struct bytes *content, struct slice type, struct buf *out)
{
    struct value value;
    if (!packet_value(content, type, &value))
        return false;
    if (value.kind == VALUE_JSON)
        rope_add(out, content, value.text);
    else
        rope_add_json(out, content, value.text);
    return true;
}

/* ---- values ---- */

static bool text_value(struct bytes *bytes, enum value_kind kind, struct value *value)
{
    *value = (struct value){ kind, bytes, .text = bytes_slice(bytes) };
    return bytes;
}

static bool number_value(int64_t number, enum value_kind kind, struct value *value)
{
    *value = (struct value){ kind, .number = number };
    return number != 0;
}

/* Returns false if the field is unset; value is undefined then. */
static bool value_of(const struct view *view, const struct run *run, enum field field,
                     struct value *value)
{
    const struct field_source *source = &sources[field];
    const void *at = run_field(run, source->offset);
    switch (source->kind) {
    case FROM_ID:
        *value = (struct value){ VALUE_TEXT, .text = slice_of(run->id) };
        return true;
    case FROM_STATUS:
        *value = (struct value){ VALUE_TEXT,
                                 .text = slice_of(run_status_name(
                                     (enum run_status)run->status, view->vocabulary)) };
        return true;
    case FROM_IS_TEST:
        *value = (struct value){ VALUE_BOOL, .truth = run->is_test };
        return true;
    case FROM_TAGS: *value = (struct value){ VALUE_TAGS, .tags = run->tags }; return true;
    case FROM_REAL:
        *value = (struct value){ VALUE_REAL, .real = *(const double *)at };
        return true;
    case FROM_NUMBER: number_value(*(const uint32_t *)at, VALUE_NUMBER, value); return true;
    case FROM_COUNT: return number_value(*(const uint16_t *)at, VALUE_NUMBER, value);
    case FROM_TIME: return number_value(*(const int64_t *)at, VALUE_TIME, value);
    case FROM_TEXT: return text_value(bytes_at(run, source->offset), VALUE_TEXT, value);
    case FROM_ERROR: return text_value(run->error, VALUE_ERROR, value);
    case FROM_JSON: return text_value(bytes_at(run, source->offset), VALUE_JSON, value);
    case FROM_METADATA:
        return text_value(run->metadata, VALUE_JSON, value) &&
               scan_type(value->text) == SCAN_OBJECT;
    case FROM_PACKET:
        return packet_value(bytes_at(run, source->offset),
                            bytes_slice(bytes_at(run, source->type)), value);
    }
    return false;
}

/* ---- differences ---- */

static bool bytes_differ(const struct bytes *a, const struct bytes *b)
{
    if (a == b)
        return false;
    return !a || !b || !slice_equal(bytes_slice(a), bytes_slice(b));
}

static bool tags_differ(const struct tag_list *a, const struct tag_list *b)
{
    if (a == b)
        return false;
    if (!a || !b || a->count != b->count)
        return (a ? a->count : 0) != (b ? b->count : 0);
    for (uint32_t i = 0; i < a->count; i++)
        if (bytes_differ(a->names[i], b->names[i]))
            return true;
    return false;
}

static bool differs(const struct run *before, const struct run *after, enum field field)
{
    const struct field_source *source = &sources[field];
    const void *a = run_field(before, source->offset);
    const void *b = run_field(after, source->offset);
    switch (source->kind) {
    case FROM_TIME: return *(const int64_t *)a != *(const int64_t *)b;
    case FROM_NUMBER: return *(const uint32_t *)a != *(const uint32_t *)b;
    case FROM_COUNT: return *(const uint16_t *)a != *(const uint16_t *)b;
    case FROM_REAL: return *(const double *)a != *(const double *)b;
    case FROM_TAGS: return tags_differ(before->tags, after->tags);
    case FROM_PACKET:
        return bytes_differ(bytes_at(before, source->offset),
                            bytes_at(after, source->offset)) ||
               bytes_differ(bytes_at(before, source->type), bytes_at(after, source->type));
    case FROM_TEXT:
    case FROM_METADATA:
    case FROM_ERROR:
    case FROM_JSON:
        return bytes_differ(bytes_at(before, source->offset),
                            bytes_at(after, source->offset));
    case FROM_ID:
    case FROM_STATUS:
    case FROM_IS_TEST: break;
    }
    return false;
}

/* A packet whose rev has not moved has not changed, even if it is not in memory. */
static uint32_t fields_that_moved(const struct run *before, const struct run *after)
{
    uint32_t fields = FIELDS_SMALL;
    if (before->whole_rev != after->whole_rev)
        fields |= FIELDS_WITH_WHOLE;
    if (before->metadata_rev != after->metadata_rev)
        fields |= FIELDS_WITH_METADATA;
    if (before->output_rev != after->output_rev)
        fields |= FIELDS_WITH_OUTPUT;
    return fields;
}

static uint32_t fields_that_differ(const struct run *before, const struct run *after,
                                   uint32_t candidates)
{
    uint32_t found = 0;
    for (uint32_t left = candidates; left; left &= left - 1) {
        enum field field = (enum field)__builtin_ctz(left);
        if (differs(before, after, field))
            found |= 1u << field;
    }
    return found;
}

/* ---- rows ---- */

/* nulls: the fields that are null, not left out, when they are unset. */
static void render_fields(const struct view *view, const struct run *run, uint32_t fields,
                          uint32_t nulls, bool whole, struct buf *out)
{
    struct member members[FIELD_COUNT];
    struct row row = { run->id, run->version, whole ? ROW_WHOLE : ROW_CHANGE, members, 0 };
    if (view->encoding == ENCODING_SHAPE) {
        shape_add_row(view, run, fields, whole, out);
        return;
    }
    for (uint32_t left = fields; left; left &= left - 1) {
        enum field field = (enum field)__builtin_ctz(left);
        struct member *member = &members[row.count];
        member->name = field_name(field);
        if (!value_of(view, run, field, &member->value)) {
            if (!(nulls & 1u << field))
                continue;
            member->value = (struct value){ .kind = VALUE_NULL };
        }
        row.count++;
    }
    encode_row(view->encoding, &row, out);
}

void render_whole(const struct view *view, const struct run *run, struct buf *out)
{
    render_fields(view, run, view->fields, FIELDS_REQUIRED, true, out);
}

void render_delta(const struct view *view, const struct run *before,
                  const struct run *after, struct buf *out)
{
    uint32_t candidates = view->fields & fields_that_moved(before, after);
    uint32_t fields = fields_that_differ(before, after, candidates & ~FIELDS_OF_DELTA);
    fields |= view->fields & FIELDS_OF_DELTA;
    render_fields(view, after, fields, FIELDS_ALL, false, out);
}

void render_since(const struct view *view, const struct run *run, uint64_t base,
                  struct buf *out)
{
    if (base == 0 || run->whole_rev > base) {
        render_whole(view, run, out);
        return;
    }
    uint32_t fields = FIELDS_SMALL;
    if (run->metadata_rev > base)
        fields |= FIELDS_WITH_METADATA;
    if (run->output_rev > base)
        fields |= FIELDS_WITH_OUTPUT;
    render_fields(view, run, view->fields & fields, FIELDS_ALL, false, out);
}

void render_left(const struct view *view, const char *id, uint32_t version, struct buf *out)
{
    const struct row row = { .id = id, .version = version, .kind = ROW_LEFT };
    encode_row(view->encoding, &row, out);
}
