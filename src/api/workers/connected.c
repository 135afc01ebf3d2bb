/* connected.c - lists the workers that currently execute an environment's runs.
 *
 *   in dev:    each session, which is a CLI, known by the version it requests runs with
 *   elsewhere: workers that wait for a run at this moment, counted by what they take. One
 *              that executes as much as it can requests nothing. It is listed as long as
 *              fleet::served_until says */
#include "api/request/route.h"
#include "base/json/members.h"
#include "core/engine/attempts.h"
#include "core/fleet/dev_sessions.h"

enum { NO_BODY = 4096 };

/* Returns the wall time of a monotonic one; 0 stays 0. */
static int64_t wall_of(const struct api_call *call, int64_t monotonic_ms)
{
    struct loop *loop = engine_loop(api_engine(call->api));
    return monotonic_ms ? loop_wall_ms(loop) - (loop_now_ms(loop) - monotonic_ms) : 0;
}

static void begin_item(struct buf *out, const char *kind)
{
    if (out->ptr[out->len - 1] != '[')
        buf_add_char(out, ',');
    buf_add_char(out, '{');
    members_add_text(out, "kind", slice_of(kind));
}

static void add_session(const struct api_call *call, const struct session *session,
                        struct buf *out)
{
    bool is_gone = dev_sessions_gone_ms(call->env, session) > 0;
    begin_item(out, "cli");
    members_add_text(out, "id", slice_of(session->current->id));
    members_add_text(out, "version", slice_of(session->current->version));
    members_add_time(out, "connectedAt", wall_of(call, session->asked_since));
    members_add_time(out, "lastHeardAt", wall_of(call, session->last_seen_at));
    members_add_number(out, "waiting", session->held);
    members_add_bool(out, "isConnected", !is_gone);
    buf_add_char(out, '}');
}

static void add_sessions(const struct api_call *call, struct buf *out)
{
    for (struct session *s = NULL; (s = dev_sessions_next(call->env, s));)
        if (s->current)
            add_session(call, s, out);
}

static void add_waiting(const char *kind, uint32_t count, struct buf *out)
{
    begin_item(out, kind);
    members_add_number(out, "waiting", count);
    members_add_bool(out, "isConnected", true);
    buf_add_char(out, '}');
}

static void add_line(const struct api_call *call, struct buf *out)
{
    const struct fleet *fleet = call->env->fleet;
    struct loop *loop = engine_loop(api_engine(call->api));
    uint32_t plain = fleet->open_seats, deployed = fleet->seated - plain;
    bool is_served = fleet->served_until > loop_now_ms(loop);
    if (deployed || (is_served && !plain))
        add_waiting("supervise", deployed, out);
    if (plain)
        add_waiting("worker", plain, out);
}

static enum err list(struct api_call *call)
{
    struct buf out = { 0 };
    buf_add_text(&out, "{\"data\":[");
    if (call->env->is_dev)
        add_sessions(call, &out);
    else
        add_line(call, &out);
    buf_add_text(&out, "]}");
    api_reply_json(call, 200, buf_slice(&out));
    buf_finish(&out);
    return OK;
}

/* clang-format off */
static const struct route routes[] = {
    { .method = HTTP_GET_, .path = "/api/v1/environments/workers",
      .auth = AUTH_KEY | AUTH_FOR_USER, .body_limit = NO_BODY, .handle = list,
      .id = "list_workers_v1", .summary = "The workers that execute the runs of the environment",
      .reply = "{data: {kind: 'cli'|'supervise'|'worker', id?: string, version?: string, "
          "connectedAt?: datetime, lastHeardAt?: datetime, waiting: integer, isConnected: "
          "boolean}[]}" },
    { 0 },
};
/* clang-format on */

const struct area connected_area = { .tag = "workers",
                                     .is_for_users = true,
                                     .routes = routes };
