/* line.c - dequeues join and leave the lines of their environments.
 *
 * A worker that was in line counts as connected for as long as a silent session does. */
#include "core/fleet/line.h"

#include "core/fleet/dev_sessions.h"

struct slice line_key(const void *value)
{
    return ((const struct dequeue_seat *)value)->request_id;
}

struct dequeue_seat *line_name(struct dequeue_seat *seat, struct slice request_id)
{
    struct table *named = &seat->env->fleet->named;
    struct dequeue_seat *before = table_remove(named, request_id);
    if (before)
        before->request_id = (struct slice){ 0 };
    seat->request_id = request_id;
    table_insert(named, seat);
    return before;
}

void line_clear_name(struct dequeue_seat *seat)
{
    if (seat->request_id.ptr)
        table_remove(&seat->env->fleet->named, seat->request_id);
    seat->request_id = (struct slice){ 0 };
}

bool line_join(struct dequeue_seat *seat, struct slice worker)
{
    struct environment *env = seat->env;
    struct list *line = &env->fleet->line;
    if (env->is_dev) {
        seat->session = dev_sessions_asking(env, worker);
        if (!seat->session)
            return false;
        seat->session->held++;
        line = &seat->session->dequeues;
    }
    list_append(line, &seat->link);
    int64_t until = loop_now_ms(env->loop) + SESSION_LOST_MS;
    env->fleet->seated++;
    env->fleet->served_until = until;
    if (!seat->deployed_only) {
        env->fleet->open_seats++;
        env->fleet->open_until = until;
    }
    return true;
}

void line_leave(struct dequeue_seat *seat)
{
    struct fleet *fleet = seat->env->fleet;
    if (list_empty(&seat->link))
        return;
    int64_t now = loop_now_ms(seat->env->loop);
    list_remove(&seat->link);
    fleet->seated--;
    fleet->served_until = now + SESSION_LOST_MS;
    if (!seat->deployed_only) {
        fleet->open_seats--;
        fleet->open_until = fleet->served_until;
    }
    if (!seat->session)
        return;
    seat->session->held--;
    seat->session->asked_at = seat->session->last_seen_at = now;
    seat->session = NULL;
}
