/* mirror.c - applies rows, forgets them, and compares with the ledger at every step. */
#include "tests/support/fakes/mirror.h"

#include <stdio.h>

#include "base/json/scan.h"
#include "base/mem.h"
#include "core/wire/render.h"
#include "tests/support/world/show_msgpack.h"
#include "tests/support/world/sim.h"

/* ---- made, gone ---- */

static struct slice row_key(const void *value)
{
    return slice_of(((const struct mirror_row *)value)->id);
}

void mirror_init(struct mirror *mirror, const struct ledger *ledger,
                 const struct view *view)
{
    *mirror = (struct mirror){ .ledger = ledger, .view = *view };
    table_init(&mirror->rows, row_key);
}

static void row_destroy(struct mirror_row *row)
{
    for (int i = 0; i < FIELD_COUNT; i++)
        bytes_unref(row->fields[i]);
    free(row);
}

void mirror_finish(struct mirror *mirror)
{
    size_t at = 0;
    for (struct mirror_row *row; (row = table_next(&mirror->rows, &at));)
        row_destroy(row);
    table_finish(&mirror->rows);
    for (int i = 0; i < MIRROR_SUBS; i++)
        filter_finish(&mirror->subs[i].filter);
}

/* ---- filters ---- */

static bool fits(const struct mirror *mirror, const struct mirror_sub *sub,
                 const struct mirror_row *row)
{
    const struct story *story = ledger_find(mirror->ledger, slice_of(row->id));
    return filter_wants(&sub->filter, story_version(story, row->version));
}

static bool fits_any(const struct mirror *mirror, const struct mirror_row *row,
                     const struct mirror_sub *but, bool only_live)
{
    for (int i = 0; i < MIRROR_SUBS; i++) {
        const struct mirror_sub *sub = &mirror->subs[i];
        if (sub->id && sub != but && (sub->live || !only_live) && fits(mirror, sub, row))
            return true;
    }
    return false;
}

/* Forgets the rows that no subscription still has, or (if ended is given) that match
 * its filter but were not in its snapshot. */
static void forget_rows(struct mirror *mirror, const struct mirror_sub *ended)
{
    unsigned bit = ended ? 1u << (ended - mirror->subs) : 0;
    struct mirror_row **gone = mem_new_array(struct mirror_row *, mirror->rows.count);
    size_t count = 0, at = 0;
    for (struct mirror_row *row; (row = table_next(&mirror->rows, &at));) {
        bool keep = ended ? row->seen & bit || !fits(mirror, ended, row) ||
                                fits_any(mirror, row, ended, true)
                          : fits_any(mirror, row, NULL, false);
        if (!keep)
            gone[count++] = row;
    }
    while (count) {
        table_remove(&mirror->rows, slice_of(gone[--count]->id));
        row_destroy(gone[count]);
    }
    free(gone);
}

/* ---- subscriptions ---- */

static struct mirror_sub *find_sub(struct mirror *mirror, int64_t id)
{
    for (int i = 0; i < MIRROR_SUBS; i++)
        if (mirror->subs[i].id == id)
            return &mirror->subs[i];
    return NULL;
}

struct mirror_sub *mirror_add(struct mirror *mirror, struct filter *filter)
{
    struct mirror_sub *sub = find_sub(mirror, 0);
    if (!sub)
        return NULL;
    *sub = (struct mirror_sub){ .id = ++mirror->last_id, .filter = *filter };
    *filter = (struct filter){ 0 };
    return sub;
}

static void drop_sub(struct mirror *mirror, struct mirror_sub *sub)
{
    unsigned bit = 1u << (sub - mirror->subs);
    size_t at = 0;
    filter_finish(&sub->filter);
    *sub = (struct mirror_sub){ 0 };
    for (struct mirror_row *row; (row = table_next(&mirror->rows, &at));)
        row->seen &= ~bit;
    forget_rows(mirror, NULL);
}

static bool has_subs(const struct mirror *mirror)
{
    for (int i = 0; i < MIRROR_SUBS; i++)
        if (mirror->subs[i].id && !mirror->subs[i].leaving)
            return true;
    return false;
}

void mirror_leave(struct mirror *mirror, struct mirror_sub *sub, bool connected)
{
    sub->leaving = true;
    if (!has_subs(mirror))
        mirror->has_position = false;
    if (!connected)
        drop_sub(mirror, sub);
}

void mirror_cut(struct mirror *mirror)
{
    for (int i = 0; i < MIRROR_SUBS; i++) {
        struct mirror_sub *sub = &mirror->subs[i];
        sub->live = sub->snapshot = false;
        if (sub->id && sub->leaving)
            drop_sub(mirror, sub);
    }
}

bool mirror_may_resume(const struct mirror *mirror, const struct mirror_sub *sub)
{
    return sub->synced && mirror->has_position;
}

/* ---- rows ---- */

static void set_field(struct mirror_row *row, enum field field, struct slice value)
{
    bytes_unref(row->fields[field]);
    row->fields[field] = scan_type(value) == SCAN_NULL ? NULL : bytes_create(value);
}

static void set_fields(struct mirror_row *row, struct slice object, bool whole)
{
    struct scan_members members = scan_members(object);
    struct slice key, value;
    for (int i = 0; i < FIELD_COUNT && whole; i++)
        bytes_clear(&row->fields[i]);
    while (scan_next_member(&members, &key, &value)) {
        enum field field = field_from_name(key);
        if (field == FIELD_COUNT)
            violated("a run has no field '%.*s'", SLICE_ARG(key));
        set_field(row, field, value);
    }
}

/* [id, version, {fields}, 1?] */
struct row_text {
    char id[ID_MAX];
    uint32_t version;
    struct slice fields;
    bool whole;
};

static struct row_text read_row(struct slice row)
{
    struct scan_members elements = scan_members(row);
    struct slice id, version, one;
    struct row_text text;
    uint64_t number = 0;
    bool read = scan_next_element(&elements, &id) &&
                scan_next_element(&elements, &version) &&
                scan_next_element(&elements, &text.fields);
    if (!read || text_to_u64(version, &number))
        violated("this is no row: %.*s", SLICE_ARG(row));
    snprintf(text.id, sizeof(text.id), "%.*s", (int)id.len - 2, id.ptr + 1);
    text.version = (uint32_t)number;
    text.whole = scan_next_element(&elements, &one);
    return text;
}

/* msgpack shown as JSON, with times as numbers. */
void mirror_to_json(const struct view *view, struct slice message, struct buf *json)
{
    bool in_string = false;
    struct buf shown = { 0 };
    if (view->encoding == ENCODING_JSON) {
        buf_add(json, message);
        return;
    }
    if (!show_msgpack(message, &shown))
        violated("a message is not msgpack");
    for (size_t i = 0; i < shown.len; i++) {
        char c = shown.ptr[i];
        if (c == '\\') {
            buf_add_char(json, c);
            c = shown.ptr[++i];
        } else if (c == '"') {
            in_string = !in_string;
        } else if (c == '@' && !in_string) {
            continue;
        }
        buf_add_char(json, c);
    }
    buf_finish(&shown);
}

/* The row is the ledger's version of that number, in every field of the view. */
static void check_row(const struct mirror *mirror, const struct mirror_row *row)
{
    const struct story *story = ledger_find(mirror->ledger, slice_of(row->id));
    const struct run *run = story ? story_version(story, row->version) : NULL;
    struct mirror_row expected = { 0 };
    struct buf whole = { 0 }, json = { 0 };

    if (!run)
        violated("%s v%u was never written", row->id, row->version);
    render_whole(&mirror->view, run, &whole);
    mirror_to_json(&mirror->view, buf_slice(&whole), &json);
    set_fields(&expected, read_row(buf_slice(&json)).fields, true);
    for (int i = 0; i < FIELD_COUNT; i++) {
        struct slice have = bytes_slice(row->fields[i]);
        struct slice want = bytes_slice(expected.fields[i]);
        if (!slice_equal(have, want))
            violated("%s v%u: %s is %.*s, not %.*s", row->id, row->version,
                     field_name((enum field)i), SLICE_ARG(have), SLICE_ARG(want));
        bytes_unref(expected.fields[i]);
    }
    buf_finish(&whole);
    buf_finish(&json);
}

static struct mirror_row *apply(struct mirror *mirror, struct slice element, bool by_rows)
{
    struct row_text text = read_row(element);
    struct mirror_row *row = table_find(&mirror->rows, slice_of(text.id));
    if (!row) {
        if (!text.whole)
            violated("a delta for %s v%u, which the client does not have", text.id,
                     text.version);
        row = mem_new(struct mirror_row);
        snprintf(row->id, sizeof(row->id), "%.*s", (int)sizeof(row->id) - 1, text.id);
        table_insert(&mirror->rows, row);
    }
    if (text.version < row->version || (text.version == row->version && !text.whole))
        return row; /* older than what it has */
    set_fields(row, text.fields, text.whole);
    row->by_rows = by_rows && (row->by_rows || text.version > row->version);
    row->version = text.version;
    check_row(mirror, row);
    mirror->applied++;
    return row;
}

/* ---- syncs ---- */

/* A version that came with rows of a subscription that was catching up can be newer than
 * seq. */
static void check_story(const struct mirror *mirror, const struct mirror_sub *sub,
                        const struct story *story, uint64_t seq)
{
    const struct run *run = story_at(story, seq);
    if (!run || story->purged || !filter_wants(&sub->filter, run))
        return;
    const struct mirror_row *row = table_find(&mirror->rows, slice_of(story->id));
    if (!row)
        violated("%s is missing at sync %llu", story->id, (unsigned long long)seq);
    if (row->version < run->version || (row->version > run->version && !row->by_rows))
        violated("%s is v%u at sync %llu, not v%u", story->id, row->version,
                 (unsigned long long)seq, run->version);
}

static void check_sync(struct mirror *mirror, const struct mirror_sub *sub, uint64_t seq)
{
    list_each (link, &mirror->ledger->stories)
        check_story(mirror, sub, container_of(link, struct story, link), seq);
    mirror->syncs++;
}

static void check_live(struct mirror *mirror, uint64_t seq)
{
    for (int i = 0; i < MIRROR_SUBS; i++)
        if (mirror->subs[i].live && !mirror->subs[i].leaving)
            check_sync(mirror, &mirror->subs[i], seq);
}

/* The position advances only while all that were complete before are live again. */
static void move_position(struct mirror *mirror, uint64_t seq, bool more)
{
    for (int i = 0; i < MIRROR_SUBS; i++) {
        const struct mirror_sub *sub = &mirror->subs[i];
        if (sub->id && !sub->leaving && sub->synced && !sub->live)
            return;
    }
    if (!more)
        mirror->base = seq;
    else if (!mirror->has_position)
        mirror->base = 0;
    mirror->has_position = true;
    mirror->seq = seq;
}

/* ---- messages ---- */

static uint64_t number_of(struct slice message, const char *name)
{
    uint64_t number = 0;
    if (text_to_u64(scan_member(message, name), &number))
        violated("no %s in %.*s", name, SLICE_ARG(message));
    return number;
}

static void on_patch(struct mirror *mirror, struct slice message)
{
    struct scan_members rows = scan_members(scan_member(message, "rows"));
    uint64_t seq = number_of(message, "seq");
    bool more = scan_member(message, "more").ptr;
    struct slice row;
    while (scan_next_element(&rows, &row))
        apply(mirror, row, false);
    move_position(mirror, seq, more);
    if (!more)
        check_live(mirror, seq);
}

static void on_rows(struct mirror *mirror, struct slice message)
{
    struct mirror_sub *sub = find_sub(mirror, (int64_t)number_of(message, "id"));
    struct scan_members rows = scan_members(scan_member(message, "rows"));
    uint64_t seq = number_of(message, "seq");
    struct slice element;
    if (!sub)
        violated("rows of a subscription that has ended");
    while (scan_next_element(&rows, &element)) {
        struct mirror_row *row = apply(mirror, element, true);
        row->seen |= 1u << (sub - mirror->subs);
    }
    if (sub->leaving || scan_member(message, "more").ptr)
        return;
    sub->synced = sub->live = true;
    if (sub->snapshot)
        forget_rows(mirror, sub);
    sub->snapshot = false;
    move_position(mirror, seq, false);
    check_live(mirror, seq);
}

static void on_ok(struct mirror *mirror, struct slice message)
{
    struct mirror_sub *sub = find_sub(mirror, (int64_t)number_of(message, "id"));
    size_t at = 0;
    if (!sub || sub->leaving)
        return;
    sub->snapshot = slice_is(scan_member(message, "mode"), "\"snapshot\"");
    if (!sub->snapshot)
        return;
    sub->synced = false;
    for (struct mirror_row *row; (row = table_next(&mirror->rows, &at));)
        row->seen &= ~(1u << (sub - mirror->subs));
}

void mirror_receive(struct mirror *mirror, struct slice message)
{
    struct buf json = { 0 };
    mirror_to_json(&mirror->view, message, &json);
    struct slice text = buf_slice(&json), op = scan_member(text, "op");

    if (!scan_is_json(text))
        violated("a message is not JSON: %.*s", SLICE_ARG(text));
    if (slice_is(op, "\"patch\"")) {
        on_patch(mirror, text);
    } else if (slice_is(op, "\"rows\"")) {
        on_rows(mirror, text);
    } else if (slice_is(op, "\"ok\"")) {
        on_ok(mirror, text);
    } else if (slice_is(op, "\"end\"")) {
        drop_sub(mirror, find_sub(mirror, (int64_t)number_of(text, "id")));
    } else if (slice_is(op, "\"ping\"")) {
        move_position(mirror, number_of(text, "seq"), false);
        check_live(mirror, number_of(text, "seq"));
    } else {
        violated("an unknown message: %.*s", SLICE_ARG(text));
    }
    buf_finish(&json);
}

/* ---- the end ---- */

bool mirror_complete(const struct mirror *mirror)
{
    for (int i = 0; i < MIRROR_SUBS; i++)
        if (mirror->subs[i].id && !mirror->subs[i].live)
            return false;
    return true;
}

/* Retention may remove a run between two changes that a client sees: it ended while the
 * client was away, and the client has resumed while the response to the purge was in
 * flight. */
void mirror_check_end(struct mirror *mirror)
{
    size_t at = 0;
    check_live(mirror, mirror->ledger->seq);
    for (struct mirror_row *row; (row = table_next(&mirror->rows, &at));) {
        const struct story *story = ledger_find(mirror->ledger, slice_of(row->id));
        if (!story->purged && row->version != story->count)
            violated("%s rests at v%u and the client has v%u", row->id, story->count,
                     row->version);
    }
}
