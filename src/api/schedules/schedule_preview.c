/* schedule_preview.c - the route that shows when a cron expression would fire next.
 *
 * Nothing is stored. Finding the times of a rare expression takes a long time, so the
 * search is done in time slices. */
#include "api/schedules/schedule_body.h"
#include "base/json/members.h"
#include "base/json/scan.h"
#include "base/mem.h"

enum { COUNT_DEFAULT = 5, COUNT_MAX = 10 };

struct schedule_preview {
    struct api_call *call;
    struct deferred deferred;
    struct cron cron;
    const struct zone *zone;
    int64_t after_ms; /* Unix ms; the next time is later */
    int64_t left;
    struct buf out;
};

static void reply(struct schedule_preview *op)
{
    buf_add_text(&op->out, "]}");
    api_reply_json(op->call, 200, buf_slice(&op->out));
    buf_finish(&op->out);
    free(op);
}

static void find_times(struct deferred *deferred)
{
    struct schedule_preview *op = container_of(deferred, struct schedule_preview, deferred);
    struct loop *loop = engine_loop(api_engine(op->call->api));
    struct timeslice timeslice = loop_timeslice(loop);
    while (op->left && timeslice_left(&timeslice)) {
        int64_t next = cron_next(&op->cron, op->zone, op->after_ms);
        op->left = next ? op->left - 1 : 0;
        if (!next)
            break;
        if (op->out.ptr[op->out.len - 1] != '[')
            buf_add_char(&op->out, ',');
        buf_add_json_time(&op->out, next);
        op->after_ms = next;
    }
    if (op->left)
        loop_defer(loop, deferred);
    else
        reply(op);
}

static enum err read(struct api_call *call, struct schedule_preview *op,
                     struct bytes **cron, struct bytes **timezone)
{
    struct slice body;
    op->left = COUNT_DEFAULT;
    if (api_read_object(call, &body))
        return ERR_INVALID;
    *cron = members_text(body, "cron");
    *timezone = members_text(body, "timezone");
    bool has_count = scan_member(body, "count").ptr != NULL;
    if (!*cron)
        return explain(&call->why, ERR_INVALID, "cron: must be a string like 0 9 * * 1-5");
    if (!*timezone && scan_member(body, "timezone").ptr)
        return explain(&call->why, ERR_INVALID, "timezone: must be a string like UTC");
    if (has_count &&
        (!members_number(body, "count", &op->left) || op->left < 1 || op->left > COUNT_MAX))
        return explain(&call->why, ERR_INVALID, "count: must be a number from 1 to %d",
                       COUNT_MAX);
    if (cron_read_new(bytes_slice(*cron), &op->cron, &call->why))
        return call->why.code = ERR_RULE;
    return schedule_body_find_zone(call, *timezone ? bytes_slice(*timezone) : SLICE("UTC"),
                                   &op->zone, &call->why);
}

enum err schedule_preview(struct api_call *call)
{
    struct schedule_preview *op = mem_new(struct schedule_preview);
    struct loop *loop = engine_loop(api_engine(call->api));
    struct bytes *cron = NULL, *timezone = NULL;
    struct buf words = { 0 };
    enum err refused = read(call, op, &cron, &timezone);
    bytes_unref(cron);
    bytes_unref(timezone);
    if (refused) {
        free(op);
        return refused;
    }
    op->call = call;
    op->after_ms = loop_wall_ms(loop);
    op->deferred.fn = find_times;
    list_init(&op->deferred.link);
    cron_describe(&op->cron, &words);
    buf_add_char(&op->out, '{');
    members_add_text(&op->out, "description", buf_slice(&words));
    buf_finish(&words);
    members_add_text(&op->out, "timezone", slice_of(zone_name(op->zone)));
    buf_add_text(&op->out, ",\"next\":[");
    call->busy = true;
    loop_defer(loop, &op->deferred);
    return OK;
}
