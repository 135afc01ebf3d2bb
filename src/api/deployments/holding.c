/* holding.c - waits for the end of a build, and replies to the CLI. */
#include "api/deployments/holding.h"

#include "api/deployments/builds.h"
#include "api/deployments/deployment_show.h"
#include "api/request/connection_limit.h"
#include "base/mem.h"

struct holding {
    struct api_call *call;
    struct deployment *deployment;
    struct deployment_watcher watcher;
    struct holding_extras extras;
    struct seat seat;
    struct timer timer;
    bool is_last; /* the CLI's last attempt */
};

static struct loop *loop_of(const struct holding *holding)
{
    return holding->deployment->all->loop;
}

/* Frees holding and returns its call, which must be answered. */
static struct api_call *end(struct holding *holding)
{
    struct api_call *call = holding->call;
    call->state = NULL;
    call->on_gone = NULL;
    timers_clear(loop_timers(loop_of(holding)), &holding->timer);
    list_remove(&holding->watcher.link);
    connection_limit_leave(&holding->seat);
    json_decref(holding->extras.canceled);
    free(holding);
    return call;
}

static void reply_created(struct holding *holding)
{
    struct buf out = { 0 };
    show_initialized(holding->deployment, false, holding->extras.canceled, &out);
    api_reply_json(end(holding), 200, buf_slice(&out));
    buf_finish(&out);
}

static void reply_failed(struct holding *holding)
{
    struct buf text = { 0 };
    show_failure(&holding->deployment->row, &text);
    buf_add_char(&text, '\0');
    api_reply_refusal(end(holding), 422, text.ptr);
    buf_finish(&text);
}

static void reply_lost(struct holding *holding)
{
    const struct failure lost = holding->deployment->lost;
    struct api_call *call = end(holding);
    call->why = lost;
    api_reply_error(call, lost.code == ERR_CANCELED ? ERR_DRAINING : lost.code);
}

/* Answers 503. The client retries with the same request id. */
static void reply_again(struct holding *holding, const char *text)
{
    struct api_call *call = end(holding);
    api_add_header(call, "x-should-retry", SLICE("true"));
    api_add_header(call, "retry-after", SLICE("1"));
    api_reply_refusal(call, 503, text);
}

static void on_changed(struct deployment_watcher *watcher, struct deployment *deployment)
{
    struct holding *holding = container_of(watcher, struct holding, watcher);
    if (deployment->lost.code)
        reply_lost(holding);
    else if (!deployment_is_settled(deployment))
        return;
    else if (deployment->row.status == DEPLOYMENT_DEPLOYED)
        reply_created(holding);
    else
        reply_failed(holding);
}

static void on_time(struct timer *timer)
{
    struct holding *holding = container_of(timer, struct holding, timer);
    if (holding->is_last && holding->deployment->document)
        reply_created(holding); /* a slow build is not a failed one */
    else
        reply_again(holding, "The version is being built; try again");
}

static void on_gone(struct api_call *call)
{
    api_reply_gone(end(call->state));
}

static void on_drain(struct api_call *call)
{
    reply_again(call->state, "The gateway is shutting down; try again");
}

void holding_begin(struct api_call *call, struct deployment *deployment,
                   struct holding_extras extras)
{
    struct holding *holding = mem_new(struct holding);
    struct loop *loop = deployment->all->loop;
    holding->call = call;
    holding->deployment = deployment;
    holding->extras = extras;
    holding->watcher.changed = on_changed;
    holding->is_last = ++deployment->tries >= HOLDING_TRIES_MAX;
    deployment_watch(deployment, &holding->watcher);
    enum err full = connection_limit_take(&holding->seat, call->api, call->env, &call->why);
    if (full) {
        api_reply_error(end(holding), full);
        return;
    }
    call->busy = true;
    call->state = holding;
    call->on_gone = on_gone;
    api_hold(call, on_drain);
    if (deployment->document && deployment_is_settled(deployment))
        on_changed(&holding->watcher, deployment);
    else
        loop_set_timer(loop, &holding->timer, timers_kind(loop_timers(loop), on_time),
                       deployment->all->options.hold_ms);
}

void holding_reply_existing(struct api_call *call, struct deployment *deployment)
{
    struct buf out = { 0 };
    show_initialized(deployment, true, NULL, &out);
    api_reply_json(call, 200, buf_slice(&out));
    buf_finish(&out);
}
