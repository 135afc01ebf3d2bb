/* worker_attempts.c - the short calls of a run: dequeue, latest, heartbeat, disconnect.
 *
 * attempt_start.c has the call with a long response, attempt_completion.c the one with a
 * long body.
 *
 * A dequeue is held until a run is ready or its time is up. If the worker disconnects
 * meanwhile, or the response does not reach it, the run is given back. */
#include "core/engine/attempts.h"

#include "api/request/connection_limit.h"
#include "api/workers/completed_waits.h"
#include "api/workers/dequeued_message.h"
#include "api/workers/worker_routes.h"
#include "base/json/scan.h"
#include "base/mem.h"
#include "core/fleet/dev_sessions.h"
#include "core/model/run_end.h"

bool worker_has_token(const struct api_call *call)
{
    return call->identity->kind == CREDENTIAL_WORKER_TOKEN;
}

void worker_touch_session(const struct api_call *call)
{
    const struct tracked *run = environment_find(call->env, call->params[0]);
    if (run)
        dev_sessions_touch(call->env, &run->run);
}

enum { DISCONNECT_MAX = 500 };

static struct loop *loop_of(const struct api_call *call)
{
    return engine_loop(api_engine(call->api));
}

static void reply(struct api_call *call, struct buf *out)
{
    api_reply_json(call, 200, buf_slice(out));
    buf_finish(out);
}

/* ---- dequeue ---- */

struct taking {
    struct api_call *call;
    struct dequeue dequeue;
    struct seat seat; /* while it may be held */
    bool deployed;    /* the response is the array alone */
};

static void taking_destroy(struct taking *op)
{
    connection_limit_leave(&op->seat);
    free(op);
}

static void add_taken(struct buf *out, const struct taking *op)
{
    const struct command *command = &op->dequeue.command;
    const struct run *run = command->run;
    struct dequeued dequeued = {
        .run = run,
        .account = accounts_by_number(api_accounts(op->call->api), command->env->number),
        .worker = workers_by_version(command->env->fleet->workers,
                                     bytes_slice(run->worker_version)),
        .at = loop_wall_ms(loop_of(op->call)),
        .cents_per_ms = attempt_cents_per_ms(command->env, run),
    };
    message_add_dequeued(out, &dequeued);
}

/* A response with a run, until it is known whether the worker received it. */
struct handing {
    struct delivery delivery;
    struct engine *engine;
    uint32_t env; /* by number: an idle connection must not hold the environment */
    char run_id[RUN_ID_MAX];
    uint32_t snapshot;
    bool pinned;
};

static void on_handed(struct delivery *delivery, enum delivery_end end)
{
    struct handing *op = container_of(delivery, struct handing, delivery);
    struct environment *env = engine_environment(op->engine, op->env);
    bool keeps = end == DELIVERY_TAKEN || !env || engine_draining(op->engine);
    if (!keeps && end == DELIVERY_LOST)
        dequeue_give_back(op->engine, env, slice_of(op->run_id), op->snapshot, op->pinned);
    else if (!keeps)
        dequeue_doubt(op->engine, env, slice_of(op->run_id), op->snapshot, op->pinned);
    free(op);
}

static void follow(struct taking *op)
{
    const struct command *command = &op->dequeue.command;
    struct handing *handing = mem_new(struct handing);
    *handing = (struct handing){
        .delivery.done = on_handed,
        .engine = command->engine,
        .env = command->env->number,
        .snapshot = command->run->snapshot,
        .pinned = op->dequeue.pinned,
    };
    memcpy(handing->run_id, command->run->id, sizeof(handing->run_id));
    if (!http_follow_reply(op->call->x, &handing->delivery))
        on_handed(&handing->delivery, DELIVERY_LOST);
}

static void on_dequeued(struct dequeue *dequeue, enum err status)
{
    struct taking *op = container_of(dequeue, struct taking, dequeue);
    struct api_call *call = op->call;
    struct buf out = { 0 };

    if (status && status != ERR_NOT_FOUND && status != ERR_CANCELED) {
        api_reply_refused(call, status, &dequeue->command.why, "Run not found");
        taking_destroy(op);
        return;
    }
    buf_add_text(&out, op->deployed ? "[" : "{\"dequeuedMessages\":[");
    if (!status) {
        add_taken(&out, op);
        follow(op);
        if (call->env && dequeue->command.seq)
            api_add_seq(call, dequeue->command.seq);
    }
    buf_add_text(&out, op->deployed ? "]" : "]}");
    taking_destroy(op);
    reply(call, &out);
}

/* Cancels the dequeue: the worker has disconnected, or the gateway drains. */
static void stop_taking(struct api_call *call)
{
    struct taking *op = call->state;
    call->on_gone = NULL;
    dequeue_cancel(&op->dequeue);
}

/* Reads the id of the calling worker, which it got from its registration. Appends nothing
 * if the body has none. */
static void read_named(const struct api_call *call, struct buf *out)
{
    if (scan_is_json(call->x->body))
        scan_string(scan_member(call->x->body, "currentWorker"), out);
}

enum err worker_take(struct api_call *call, struct environment *const *environments,
                     size_t count, const struct dequeue_terms *terms)
{
    struct engine *engine = api_engine(call->api);
    int64_t wait_ms = api_options(call->api)->dequeue_wait_ms;
    struct taking *op = mem_new(struct taking);
    struct buf named = { 0 };
    op->call = call;
    op->deployed = worker_has_token(call);
    enum err refused = OK;
    if (count)
        refused = connection_limit_take(&op->seat, call->api, environments[0], &call->why);
    if (!op->deployed)
        read_named(call, &named);
    if (!refused && !op->deployed)
        refused = dequeue_begin_for(engine, call->env, buf_slice(&named), &op->dequeue,
                                    wait_ms, on_dequeued);
    else if (!refused)
        refused = dequeue_begin(engine, environments, count, terms, &op->dequeue, wait_ms,
                                on_dequeued);
    buf_finish(&named);
    if (refused) {
        taking_destroy(op);
        return refused;
    }
    op->dequeue.by_token = op->deployed;
    dequeue_name_request(&op->dequeue, api_request_id(call));
    call->busy = true;
    call->state = op;
    call->on_gone = stop_taking;
    api_hold(call, stop_taking);
    return OK;
}

enum err worker_dequeue(struct api_call *call)
{
    return worker_take(call, &call->env, 1, NULL);
}

/* ---- latest, since, heartbeat ---- */

struct looking {
    struct api_call *call;
    struct run_read read;
    struct completed_waits waits;
    bool since; /* {snapshots: […]}, those after the named one */
};

/* Adds only the newest snapshot: it has everything that a worker acts on. */
static void add_since(struct buf *out, const struct looking *op)
{
    buf_add_text(out, "{\"snapshots\":[");
    if (!run_is_newest(&op->waits.run, op->call->params[1]))
        message_add_state(out, &op->waits.run, buf_slice(&op->waits.out));
    buf_add_text(out, "]}");
}

static void on_outcomes(struct completed_waits *waits, enum err status)
{
    struct looking *op = container_of(waits, struct looking, waits);
    struct api_call *call = op->call;
    struct buf out = { 0 };

    if (!status && op->since)
        add_since(&out, op);
    else if (!status)
        message_add_latest(&out, &waits->run, buf_slice(&waits->out));
    completed_waits_finish(waits);
    free(op);
    if (status)
        api_reply_error(call, status);
    else
        reply(call, &out);
}

static void on_read(struct run_read *read, enum err status)
{
    struct looking *op = container_of(read, struct looking, read);
    struct api_call *call = op->call;
    if (!status && attempt_is_hidden(read->run, worker_has_token(call)))
        status = ERR_NOT_FOUND;
    if (!status) {
        completed_waits_begin(&op->waits, call, read->run, on_outcomes);
        return;
    }
    free(op);
    if (status == ERR_NOT_FOUND)
        explain(&call->why, ERR_NOT_FOUND, "Run not found");
    api_reply_error(call, status);
}

static enum err look(struct api_call *call, bool since)
{
    struct looking *op = mem_new(struct looking);
    op->call = call;
    op->since = since;
    call->busy = true;
    run_read_begin(call->env, call->params[0], &op->read, on_read);
    return OK;
}

enum err worker_latest(struct api_call *call)
{
    worker_touch_session(call);
    attempt_look(api_engine(call->api), call->env, call->params[0]);
    return look(call, false);
}

enum err worker_since(struct api_call *call)
{
    return look(call, true);
}

/* An old snapshot changes nothing and is not an error: the worker has not yet looked. */
enum err worker_heartbeat(struct api_call *call)
{
    const struct tracked *run = environment_find(call->env, call->params[0]);
    if (run && attempt_is_hidden(&run->run, worker_has_token(call)))
        return explain(&call->why, ERR_NOT_FOUND, "Run not found");
    worker_touch_session(call);
    attempt_heartbeat(api_engine(call->api), call->env, call->params[0], call->params[1]);
    api_reply_json(call, 200, SLICE("{\"ok\":true}"));
    return OK;
}

/* ---- disconnect ---- */

struct disconnection {
    struct api_call *call;
    size_t left; /* not done yet, and one while they are being begun */
    unsigned interrupted;
    enum err failed; /* status of the last one that failed */
};

struct interruption {
    struct command command;
    struct disconnection *op;
};

static void one_less(struct disconnection *op)
{
    struct api_call *call = op->call;
    struct buf out = { 0 };
    if (--op->left)
        return;
    buf_print(&out, "{\"cancelled\":%u}", op->interrupted);
    enum err failed = op->failed;
    free(op);
    if (!failed) {
        reply(call, &out);
        return;
    }
    buf_finish(&out);
    api_reply_error(call, failed);
}

static void on_interrupted(struct command *command, enum err status)
{
    struct interruption *one = container_of(command, struct interruption, command);
    struct disconnection *op = one->op;
    if (!status && command->seq)
        op->interrupted++;
    else if (status && status != ERR_NOT_FOUND)
        op->failed = status;
    free(one);
    one_less(op);
}

static void interrupt(struct disconnection *op, const char *run_id)
{
    struct interruption *one = mem_new(struct interruption);
    one->op = op;
    op->left++;
    attempt_interrupt(api_engine(op->call->api), op->call->env, slice_of(run_id),
                      &one->command, "Dev session ended (CLI exited)", on_interrupted);
}

static enum err check_ids(struct api_call *call, const json_t *ids)
{
    size_t i;
    json_t *id;
    if (!json_is_array(ids))
        return explain(&call->why, ERR_INVALID, "runFriendlyIds: must be an array");
    if (json_array_size(ids) > DISCONNECT_MAX)
        return explain(&call->why, ERR_INVALID, "runFriendlyIds: more than %d ids",
                       DISCONNECT_MAX);
    json_array_foreach(ids, i, id) if (!json_is_string(id)) return explain(
        &call->why, ERR_INVALID, "runFriendlyIds[%zu]: must be a string", i);
    return OK;
}

enum err worker_disconnect(struct api_call *call)
{
    json_t *body, *id;
    size_t i;

    if (call->account->type != ENVIRONMENT_DEV)
        return explain(&call->why, ERR_INVALID,
                       "Only sessions of a development environment can disconnect");
    if (api_read_json(call, &body))
        return ERR_INVALID;
    const json_t *ids = json_object_get(body, "runFriendlyIds");
    if (check_ids(call, ids)) {
        json_decref(body);
        return ERR_INVALID;
    }
    struct disconnection *op = mem_new(struct disconnection);
    op->call = call;
    op->left = 1;
    call->busy = true;
    json_array_foreach(ids, i, id) interrupt(op, json_string_value(id));
    json_decref(body);
    one_less(op);
    return OK;
}
