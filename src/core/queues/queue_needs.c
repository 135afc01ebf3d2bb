/* queue_needs.c - reads the limits and gates of an item from their text. */
#include "core/queues/queue_needs.h"

#include <string.h>

#include "base/json/scan.h"

/* Decodes a string into texts, which have room for it. Absent for another type. */
static struct slice take_text(struct slot_needs *needs, struct slice value)
{
    size_t at = needs->texts.len;
    if (!scan_string(value, &needs->texts))
        return (struct slice){ 0 };
    return (struct slice){ needs->texts.ptr + at, needs->texts.len - at };
}

static struct slot_need read_need(struct slot_needs *needs, struct slice element)
{
    if (scan_type(element) != SCAN_OBJECT)
        return (struct slot_need){ .name = take_text(needs, element) };
    struct slice pin = scan_member(element, "pin");
    struct slice key = pin.ptr ? pin : scan_member(element, "key");
    return (struct slot_need){ .name = take_text(needs, scan_member(element, "queue")),
                               .key = take_text(needs, key),
                               .is_gate = true,
                               .is_pinned = pin.ptr };
}

static bool is_same(const struct slot_need *a, const struct slot_need *b)
{
    return a->is_gate == b->is_gate && !a->key.ptr == !b->key.ptr &&
           slice_equal(a->name, b->name) && slice_equal(a->key, b->key);
}

static bool has(const struct slot_needs *needs, const struct slot_need *need)
{
    for (uint32_t i = 0; i < needs->count; i++)
        if (is_same(&needs->all[i], need))
            return true;
    return false;
}

void slot_needs_read(struct slot_needs *needs, struct slice text)
{
    struct scan_members elements = scan_members(text);
    struct slice element;
    needs->count = 0;
    needs->texts = (struct buf){ 0 };
    buf_reserve(&needs->texts, text.len);
    while (needs->count < SLOT_SET_MAX && scan_next_element(&elements, &element)) {
        struct slot_need need = read_need(needs, element);
        if (need.name.ptr && !has(needs, &need))
            needs->all[needs->count++] = need;
    }
}

void slot_needs_finish(struct slot_needs *needs)
{
    buf_finish(&needs->texts);
}

bool slot_needs_is_own(const struct slot_needs *needs, uint32_t i)
{
    const struct slot_need *need = &needs->all[i];
    return i == 0 && !need->is_gate && memchr(need->name.ptr, '/', need->name.len);
}

void slot_need_write(const struct slot_need *need, struct buf *out)
{
    buf_add_text(out, need->is_gate ? "{" : "");
    buf_add_json(out, need->name);
    if (need->is_pinned) {
        buf_add_char(out, ':');
        buf_add_json(out, need->key);
    } else if (need->key.ptr) {
        buf_add_text(out, ":*");
    }
    buf_add_text(out, need->is_gate ? "}" : "");
}

void slot_needs_write(const struct slot_needs *needs, struct buf *out)
{
    for (uint32_t i = 0; i < needs->count; i++) {
        buf_add_text(out, i ? "," : "");
        slot_need_write(&needs->all[i], out);
    }
}
