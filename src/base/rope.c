/* rope.c - a rope is text with inserts at certain places; joined, it is an array of parts.
 *
 *   struct bytes │ parts: text, insert, text, … │ the text itself │
 *
 * The texts between the inserts are stored one after the other in the bytes themselves. */
#include "base/rope.h"

#include <assert.h>

#include "base/escape.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/rope_parts.h"

struct insert {
    size_t at; /* offset in the text */
    struct rope_part part;
};

/* ---- making ---- */

void rope_cut(struct rope *rope, struct rope_end end)
{
    rope->text.len = end.text;
    while (rope->count > end.inserts) {
        struct rope_part *part = &rope->inserts[--rope->count].part;
        rope->inserted -= part->shown;
        bytes_unref(part->owner);
    }
}

void rope_clear(struct rope *rope)
{
    rope_cut(rope, (struct rope_end){ 0 });
    rope->text.rope = rope;
}

void rope_finish(struct rope *rope)
{
    rope_clear(rope);
    buf_finish(&rope->text);
    free(rope->inserts);
    *rope = (struct rope){ 0 };
}

void rope_give_back(struct rope *rope, size_t most)
{
    rope_clear(rope);
    if (rope->text.capacity > most)
        rope_finish(rope);
}

struct rope_end rope_end(const struct rope *rope)
{
    return (struct rope_end){ rope->text.len, rope->count };
}

size_t rope_len(const struct rope *rope)
{
    return rope->text.len + rope->inserted;
}

size_t rope_len_of(const struct buf *out)
{
    return out->rope ? rope_len(out->rope) : out->len;
}

static void insert(struct rope *rope, struct rope_part part)
{
    bytes_ref(part.owner);
    if (rope->count == rope->capacity) {
        rope->capacity = rope->capacity ? rope->capacity * 2 : 4;
        rope->inserts = mem_resize(rope->inserts, rope->capacity * sizeof(struct insert));
    }
    rope->inserts[rope->count++] = (struct insert){ rope->text.len, part };
    rope->inserted += part.shown;
}

static struct rope_part part_of(struct bytes *owner, struct slice text, enum rope_form form)
{
    size_t shown = form == ESCAPED ? escape_len_within(owner, text) : text.len;
    assert(shown < UINT32_MAX);
    return (struct rope_part){ owner, text.ptr, (uint32_t)text.len, (uint32_t)shown, form };
}

static void make_one_line(char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (text[i] == '\n' || text[i] == '\r')
            text[i] = ' ';
}

/* Adds a part of another rope; out may be any buffer. */
static void add_part(struct buf *out, const struct rope_part *part)
{
    struct slice text = { part->ptr, part->len };
    if (out->rope) {
        insert(out->rope, *part);
    } else if (part->form == ESCAPED) {
        buf_add_escaped(out, text);
    } else {
        buf_add(out, text);
        if (part->form == ONE_LINE)
            make_one_line(out->ptr + out->len - text.len, text.len);
    }
}

static bool is_referred_to(const struct buf *out, const struct bytes *owner,
                           struct slice text)
{
    return out->rope && owner && text.len >= ROPE_LONG;
}

void rope_add(struct buf *out, struct bytes *owner, struct slice text)
{
    if (is_referred_to(out, owner, text))
        insert(out->rope, part_of(owner, text, AS_IS));
    else
        buf_add(out, text);
}

void rope_add_json(struct buf *out, struct bytes *owner, struct slice text)
{
    if (!is_referred_to(out, owner, text)) {
        buf_add_json(out, text);
        return;
    }
    buf_add_char(out, '"');
    insert(out->rope, part_of(owner, text, ESCAPED));
    buf_add_char(out, '"');
}

static struct slice text_between(const struct rope *rope, size_t from, size_t to)
{
    struct slice text = slice_from(buf_slice(&rope->text), from);
    text.len = to - from;
    return text;
}

void rope_add_rope(struct buf *out, const struct rope *rope)
{
    size_t at = 0;
    for (uint32_t i = 0; i < rope->count; i++) {
        const struct insert *one = &rope->inserts[i];
        buf_add(out, text_between(rope, at, one->at));
        add_part(out, &one->part);
        at = one->at;
    }
    buf_add(out, text_between(rope, at, rope->text.len));
}

void rope_add_json_rope(struct buf *out, const struct rope *rope)
{
    size_t at = 0;
    if (!rope->count) {
        buf_add_json(out, buf_slice(&rope->text));
        return;
    }
    buf_add_char(out, '"');
    for (uint32_t i = 0; i < rope->count; i++) {
        const struct insert *one = &rope->inserts[i];
        struct slice text = { one->part.ptr, one->part.len };
        struct rope_part quoted = part_of(one->part.owner, text, ESCAPED);
        assert(one->part.form == AS_IS);
        buf_add_escaped(out, text_between(rope, at, one->at));
        add_part(out, &quoted);
        at = one->at;
    }
    buf_add_escaped(out, text_between(rope, at, rope->text.len));
    buf_add_char(out, '"');
}

/* ---- joining ---- */

static struct bytes *join_text(struct slice before, const struct rope *rope,
                               struct slice after, enum rope_form form)
{
    struct slice all[] = { before, buf_slice(&rope->text), after };
    struct bytes *bytes = bytes_join(all, 3);
    if (form == ONE_LINE)
        make_one_line(bytes->data + before.len, rope->text.len);
    return bytes;
}

struct joining {
    struct rope_parts *parts;
    char *text;          /* where the next text goes */
    enum rope_form form; /* AS_IS or ONE_LINE, for the whole rope */
};

static void join_piece(struct joining *joining, struct slice text)
{
    struct rope_part *last = &joining->parts->all[joining->parts->count];
    if (!text.len)
        return;
    memcpy(joining->text, text.ptr, text.len);
    if (joining->parts->count && !last[-1].owner) {
        last[-1].len += (uint32_t)text.len;
        last[-1].shown += (uint32_t)text.len;
    } else {
        uint32_t len = (uint32_t)text.len;
        *last = (struct rope_part){ NULL, joining->text, len, len, AS_IS };
        joining->parts->count++;
    }
    joining->text += text.len;
}

static void join_text_of_rope(struct joining *joining, struct slice text)
{
    char *start = joining->text;
    join_piece(joining, text);
    if (joining->form == ONE_LINE)
        make_one_line(start, text.len);
}

static void join_insert(struct joining *joining, const struct rope_part *part)
{
    struct rope_part *joined = &joining->parts->all[joining->parts->count++];
    *joined = *part;
    bytes_ref(joined->owner);
    if (joined->form == AS_IS)
        joined->form = joining->form;
}

static struct bytes *join(struct slice before, const struct rope *rope, struct slice after,
                          enum rope_form form)
{
    if (!rope->count)
        return join_text(before, rope, after, form);
    size_t most = 2 * (size_t)rope->count + 1, at = 0;
    size_t head = _Alignof(struct rope_parts) + sizeof(struct rope_parts) +
                  most * sizeof(struct rope_part);
    size_t text_len = before.len + rope->text.len + after.len;
    assert(text_len + rope->inserted < UINT32_MAX);
    struct bytes *bytes = bytes_create_empty(head + text_len);
    struct joining joining = { rope_parts_of(bytes), bytes->data + head, form };
    joining.parts->count = 0;
    join_piece(&joining, before);
    for (uint32_t i = 0; i < rope->count; i++) {
        const struct insert *one = &rope->inserts[i];
        join_text_of_rope(&joining, text_between(rope, at, one->at));
        join_insert(&joining, &one->part);
        at = one->at;
    }
    join_text_of_rope(&joining, text_between(rope, at, rope->text.len));
    join_piece(&joining, after);
    bytes->json = BYTES_PARTS;
    bytes->len = (uint32_t)(text_len + rope->inserted);
    return bytes;
}

struct bytes *rope_join(struct slice before, const struct rope *rope, struct slice after)
{
    return join(before, rope, after, AS_IS);
}

struct bytes *rope_join_line(struct slice before, const struct rope *rope,
                             struct slice after)
{
    return join(before, rope, after, ONE_LINE);
}

/* ---- reading ---- */

static const struct rope_parts *parts_of(const struct bytes *bytes)
{
    assert(bytes_are_parts(bytes));
    return rope_parts_of(bytes);
}

static void move(struct rope_place *place, const struct rope_part *part, size_t len)
{
    place->at += (uint32_t)len;
    if (place->at == part->len)
        *place = (struct rope_place){ .part = place->part + 1 };
}

size_t rope_own_len(const struct bytes *bytes)
{
    const struct rope_parts *parts = parts_of(bytes);
    size_t len = 0;
    for (uint32_t i = 0; i < parts->count; i++)
        if (!parts->all[i].owner)
            len += parts->all[i].len;
    return len;
}

struct bytes *rope_next_owner(const struct bytes *bytes, uint32_t *at)
{
    const struct rope_parts *parts = parts_of(bytes);
    while (*at < parts->count) {
        struct bytes *owner = parts->all[(*at)++].owner;
        if (owner)
            return owner;
    }
    return NULL;
}

static struct slice read_escaped(const struct rope_part *part, struct rope_place *place,
                                 char *room, size_t size)
{
    struct slice text = { part->ptr + place->at, part->len - place->at };
    size_t taken, within = place->within;
    size_t len = escape_step(text, room, size, &taken);
    place->within = 0;
    move(place, part, taken);
    return (struct slice){ room + within, len - within };
}

static struct slice read_one_line(const struct rope_part *part, struct rope_place *place,
                                  char *room, size_t size)
{
    size_t most = part->len - place->at, len = most < size ? most : size;
    memcpy(room, part->ptr + place->at, len);
    make_one_line(room, len);
    move(place, part, len);
    return (struct slice){ room, len };
}

struct slice rope_read(const struct bytes *bytes, struct rope_place *place, char *room,
                       size_t size)
{
    const struct rope_parts *parts = parts_of(bytes);
    if (place->part == parts->count)
        return (struct slice){ 0 };
    const struct rope_part *part = &parts->all[place->part];
    struct slice text = { part->ptr + place->at, part->len - place->at };
    if (part->form == AS_IS) {
        move(place, part, text.len);
        return text;
    }
    if (size < ROPE_ROOM_LEAST)
        return (struct slice){ 0 };
    return part->form == ESCAPED ? read_escaped(part, place, room, size)
                                 : read_one_line(part, place, room, size);
}

bool rope_is_read(const struct bytes *bytes, const struct rope_place *place)
{
    return place->part == parts_of(bytes)->count;
}

static void skip_escaped(struct rope_place *place, const struct rope_part *part,
                         size_t *len)
{
    struct slice text = { part->ptr + place->at, part->len - place->at };
    size_t within, passed = escape_find(text, *len + place->within, &within);
    *len = passed == text.len ? within : 0;
    place->within = (uint32_t)within;
    move(place, part, passed);
}

void rope_skip(const struct bytes *bytes, struct rope_place *place, size_t len)
{
    const struct rope_parts *parts = parts_of(bytes);
    while (len) {
        assert(place->part < parts->count);
        const struct rope_part *part = &parts->all[place->part];
        if (part->form == ESCAPED) {
            skip_escaped(place, part, &len);
            continue;
        }
        size_t most = part->len - place->at, step = len < most ? len : most;
        move(place, part, step);
        len -= step;
    }
}

void rope_add_inner(struct buf *out, const struct bytes *bytes, size_t before, size_t after)
{
    assert(before + after <= bytes->len);
    if (!bytes_are_parts(bytes)) {
        buf_add(out, (struct slice){ bytes->data + before, bytes->len - before - after });
        return;
    }
    const struct rope_parts *parts = parts_of(bytes);
    for (uint32_t i = 0; i < parts->count; i++) {
        const struct rope_part *part = &parts->all[i];
        if (part->owner) {
            add_part(out, part);
            continue;
        }
        size_t first = i ? 0 : before, last = i + 1 < parts->count ? 0 : after;
        assert(first + last <= part->len);
        buf_add(out, (struct slice){ part->ptr + first, part->len - first - last });
    }
}
