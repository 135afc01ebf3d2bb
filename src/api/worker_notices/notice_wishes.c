/* notice_wishes.c - a queue of runs to subscribe or unsubscribe, emptied from its start. */
#include "api/worker_notices/notice_wishes.h"

#include <stdio.h>

#include "base/json/scan.h"

static size_t waiting(const struct notice_wishes *wishes)
{
    return wishes->queue.len / sizeof(struct notice_wish) - wishes->taken;
}

bool notice_wishes_are_empty(const struct notice_wishes *wishes)
{
    return waiting(wishes) == 0;
}

/* Drops the ids that were taken if they outnumber those that wait. Otherwise a client that
 * never lets the queue become empty would make it long. */
static void drop_taken(struct notice_wishes *wishes)
{
    if (wishes->taken <= waiting(wishes))
        return;
    buf_drop(&wishes->queue, wishes->taken * sizeof(struct notice_wish));
    wishes->taken = 0;
}

/* Returns false for other events. */
static bool read_event(const struct socket_packet *event, bool *subscribe,
                       struct scan_members *ids)
{
    *subscribe = scan_key_is(event->name, SLICE("run:subscribe"));
    if (!*subscribe && !scan_key_is(event->name, SLICE("run:unsubscribe")))
        return false;
    if (scan_type(event->body) != SCAN_OBJECT)
        return false;
    struct slice list = scan_member(event->body, "runFriendlyIds");
    if (scan_type(list) != SCAN_ARRAY)
        return false;
    *ids = scan_members(list);
    return true;
}

/* Reads the next string without escapes: ids need none. Returns false at the end. */
static bool next_id(struct scan_members *ids, struct slice *id)
{
    while (scan_next_element(ids, id)) {
        if (scan_type(*id) != SCAN_STRING || memchr(id->ptr, '\\', id->len))
            continue;
        *id = scan_unquoted(*id);
        return true;
    }
    return false;
}

bool notice_wishes_add(struct notice_wishes *wishes, const struct socket_packet *event)
{
    struct notice_wish wish = { 0 };
    struct scan_members ids;
    struct slice id;
    if (!read_event(event, &wish.subscribe, &ids))
        return true;
    drop_taken(wishes);
    while (next_id(&ids, &id)) {
        if (!text_is_id(id, "run"))
            continue;
        if (waiting(wishes) == NOTICE_WISHES_MAX)
            return false;
        snprintf(wish.id, sizeof(wish.id), "%.*s", SLICE_ARG(id));
        buf_add(&wishes->queue, (struct slice){ (const char *)&wish, sizeof(wish) });
    }
    return true;
}

bool notice_wishes_take(struct notice_wishes *wishes, struct notice_wish *wish)
{
    if (notice_wishes_are_empty(wishes))
        return false;
    memcpy(wish, wishes->queue.ptr + wishes->taken++ * sizeof(*wish), sizeof(*wish));
    if (notice_wishes_are_empty(wishes))
        notice_wishes_finish(wishes);
    return true;
}

void notice_wishes_finish(struct notice_wishes *wishes)
{
    buf_finish(&wishes->queue);
    wishes->taken = 0;
}
