/* seen.c - messages of runs.v1 parsed once, however many connections bring them. */
#include "seen.h"

#include "base/mem.h"
#include "base/scan.h"
#include "base/text.h"

static struct slice key_of_run(const void *value)
{
    const struct tracked_run *run = value;
    return slice_of(run->id);
}

void seen_init(struct seen *seen)
{
    *seen = (struct seen){ .last = 0 };
    table_init(&seen->runs, key_of_run);
}

void seen_finish(struct seen *seen)
{
    for (unsigned i = 0; i < SEEN_MESSAGES; i++) {
        buf_finish(&seen->messages[i].text);
        free(seen->messages[i].rows);
    }
    table_finish(&seen->runs);
}

void seen_track(struct seen *seen, struct tracked_run *run)
{
    table_insert(&seen->runs, run);
}

static const struct {
    const char *name;
    enum seen_op op;
} ops[] = {
    { "\"patch\"", SEEN_PATCH }, { "\"rows\"", SEEN_ROWS },   { "\"ok\"", SEEN_OK },
    { "\"done\"", SEEN_DONE },   { "\"error\"", SEEN_ERROR }, { "\"drain\"", SEEN_DRAIN },
    { "\"end\"", SEEN_ERROR },
};

static enum seen_op op_of(struct slice name)
{
    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
        if (slice_is(name, ops[i].name))
            return ops[i].op;
    }
    return SEEN_OTHER;
}

static int64_t number_of(struct slice text)
{
    int64_t number = 0;
    (void)text_to_i64(text, &number);
    return number;
}

/* [runId, version, {fields}] or [runId, version, {all fields}, 1] */
static void parse_row(const struct seen *seen, struct slice text, struct seen_row *row)
{
    struct scan_members members = scan_members(text);
    struct slice id, version, fields;
    *row = (struct seen_row){ .run = RUN_UNKNOWN };
    if (!scan_next_element(&members, &id) || !scan_next_element(&members, &version) ||
        !scan_next_element(&members, &fields))
        return;
    row->version = (uint32_t)number_of(version);
    if (scan_type(fields) == SCAN_OBJECT) {
        struct slice metadata = scan_member(fields, "metadata");
        if (scan_type(metadata) == SCAN_OBJECT)
            row->n = number_of(scan_member(metadata, "n"));
    }
    if (id.len < 2)
        return;
    struct slice name = { id.ptr + 1, id.len - 2 };
    const struct tracked_run *run = table_find(&seen->runs, name);
    if (run)
        row->run = run->index;
}

static void parse_rows(const struct seen *seen, struct slice rows,
                       struct seen_message *message)
{
    if (scan_type(rows) != SCAN_ARRAY)
        return;
    struct scan_members elements = scan_members(rows);
    struct slice row;
    while (scan_next_element(&elements, &row)) {
        if (message->row_count == message->row_capacity) {
            message->row_capacity = 2 * message->row_capacity + 4;
            message->rows =
                mem_resize(message->rows, message->row_capacity * sizeof(struct seen_row));
        }
        parse_row(seen, row, &message->rows[message->row_count++]);
    }
}

static bool parse_message(struct seen *seen, struct seen_message *message)
{
    struct slice text = buf_slice(&message->text);
    struct slice key, value;
    message->op = SEEN_OTHER;
    message->more = false;
    message->count = message->cpu_ns = 0;
    message->row_count = 0;
    if (!scan_is_json(text) || scan_type(text) != SCAN_OBJECT)
        return false;
    struct scan_members members = scan_members(text);
    while (scan_next_member(&members, &key, &value)) {
        if (slice_is(key, "op"))
            message->op = op_of(value);
        else if (slice_is(key, "more"))
            message->more = slice_is(value, "true");
        else if (slice_is(key, "count"))
            message->count = number_of(value);
        else if (slice_is(key, "cpu_ns"))
            message->cpu_ns = number_of(value);
        else if (slice_is(key, "rows"))
            parse_rows(seen, value, message);
    }
    seen->parsed++;
    return true;
}

/* The next connection brings what the last one brought, the same connection what came
 * behind it, and the next connection of a burst what the last one began with. */
static struct seen_message *find_message(struct seen *seen, struct slice text)
{
    static const unsigned AHEAD = 2;
    for (unsigned i = 0; i < SEEN_MESSAGES; i++) {
        unsigned at = seen->last + (i < AHEAD ? i : SEEN_MESSAGES + AHEAD - 1 - i);
        at %= SEEN_MESSAGES;
        if (slice_equal(buf_slice(&seen->messages[at].text), text)) {
            seen->last = at;
            return &seen->messages[at];
        }
    }
    return NULL;
}

const struct seen_message *seen_parse(struct seen *seen, struct slice text)
{
    struct seen_message *known = find_message(seen, text);
    if (known)
        return known;
    struct seen_message *message = &seen->messages[seen->oldest];
    buf_clear(&message->text);
    buf_add(&message->text, text);
    if (!parse_message(seen, message)) {
        buf_clear(&message->text);
        return NULL;
    }
    seen->last = seen->oldest;
    seen->oldest = (seen->oldest + 1) % SEEN_MESSAGES;
    return message;
}
