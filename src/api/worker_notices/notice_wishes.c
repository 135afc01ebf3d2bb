/* notice_wishes.c - a queue of run ids, emptied from its begin. */
#include "api/worker_notices/notice_wishes.h"

#include <stdio.h>

static size_t waiting(const struct notice_wishes *wishes)
{
    return wishes->queue.len / sizeof(struct notice_wish) - wishes->taken;
}

bool notice_wishes_are_empty(const struct notice_wishes *wishes)
{
    return waiting(wishes) == 0;
}

/* No more is kept of the ids that were taken than of those that wait: a client that never
 * lets the queue become empty does not make it long. */
static void drop_taken(struct notice_wishes *wishes)
{
    if (wishes->taken <= waiting(wishes))
        return;
    buf_drop(&wishes->queue, wishes->taken * sizeof(struct notice_wish));
    wishes->taken = 0;
}

bool notice_wishes_add(struct notice_wishes *wishes, struct notice_packet *packet)
{
    struct notice_wish wish = { .subscribe = packet->kind == NOTICE_SUBSCRIBE };
    struct slice id;
    drop_taken(wishes);
    while (notice_packet_next(packet, &id)) {
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
