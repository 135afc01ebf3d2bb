/* deployment_settings.c - shows how the CLI should deploy to an environment.
 *
 *   a builder is connected ─► 200: send a bundle
 *   none is, but the gateway's own may still connect ─► held ─┬─► a builder connects: 200
 *                                                             └─► none does: 404
 *   none is ─► 404, as on a server without bundles: the CLI then builds an image */
#include "api/deployments/builds.h"
#include "api/deployments/deployment_calls.h"
#include "api/request/connection_limit.h"
#include "base/mem.h"

/* A call that is held until a builder connects. */
struct settings_wait {
    struct api_call *call;
    struct builder_watch watch;
    struct seat seat;
    struct timer timer;
};

static enum err deployment_settings_refuse(struct api_call *call)
{
    return explain(&call->why, ERR_NOT_FOUND, "Not found: this environment has no builds");
}

static void reply(struct api_call *call)
{
    api_reply_json(call, 200, SLICE("{\"build_path\":\"native_local_bundle\"}"));
}

/* Frees op and returns its call, which must be answered. */
static struct api_call *end(struct settings_wait *op)
{
    struct api_call *call = op->call;
    call->state = NULL;
    call->on_gone = NULL;
    timers_clear(loop_timers(engine_loop(api_engine(call->api))), &op->timer);
    list_remove(&op->watch.link);
    connection_limit_leave(&op->seat);
    free(op);
    return call;
}

static void on_builder(struct builder_watch *watch)
{
    reply(end(container_of(watch, struct settings_wait, watch)));
}

static void on_time(struct timer *timer)
{
    struct api_call *call = end(container_of(timer, struct settings_wait, timer));
    api_reply_error(call, deployment_settings_refuse(call));
}

static void on_gone(struct api_call *call)
{
    api_reply_gone(end(call->state));
}

static void on_drain(struct api_call *call)
{
    api_reply_error(end(call->state), ERR_DRAINING);
}

static enum err hold(struct api_call *call, struct deployments *all)
{
    struct settings_wait *op = mem_new(struct settings_wait);
    enum err full = connection_limit_take(&op->seat, call->api, call->env, &call->why);
    if (full) {
        free(op);
        return full;
    }
    op->call = call;
    op->watch.account = call->account;
    op->watch.arrived = on_builder;
    builder_watch_begin(all, &op->watch);
    call->busy = true;
    call->state = op;
    call->on_gone = on_gone;
    api_hold(call, on_drain);
    loop_set_timer(all->loop, &op->timer, timers_kind(loop_timers(all->loop), on_time),
                   builds_expected_in_ms(all));
    return OK;
}

enum err deployment_settings(struct api_call *call)
{
    enum environment_type type;
    struct deployments *all = api_deployments(call->api);
    const struct account *account = call->account;
    bool own = slice_is(call->params[0], account->project->ref) &&
               !environment_type_from_slug(call->params[1], &type) && type == account->type;
    if (!own || account->type == ENVIRONMENT_DEV)
        return deployment_settings_refuse(call);
    if (!builds_are_served(all, account))
        return builds_expected_in_ms(all) ? hold(call, all)
                                          : deployment_settings_refuse(call);
    reply(call);
    return OK;
}
