/* run_reply.c - gathers a run and its relatives, one read after another, and replies.
 *
 *   run ─► root ─► parent ─► children ─► reply
 *
 * Relatives that retention has removed are omitted. Children always need a read of the
 * store, so they are read only if the run has been on a worker or has unfinished
 * children in memory. */
#include "api/runs/run_reply.h"

#include "api/packets/packet_name.h"
#include "api/request/hidden.h"
#include "api/request/quotas.h"
#include "api/runs/run_body.h"
#include "api/schedules/schedule_body.h"
#include "base/json/members.h"
#include "base/mem.h"
#include "core/fleet/waiting.h"

enum { CHILDREN_MAX = 100 };

struct run_reply {
    struct api_call *call;
    struct run run;
    struct run root, parent; /* id is "" if there is none */
    uint64_t seq;
    struct buf waiting; /* JSON: why the run waits; "": it does not */
    struct run_read read;
    struct store_list children;
};

static void run_reply_finish(struct run_reply *reply)
{
    run_finish(&reply->run);
    run_finish(&reply->root);
    run_finish(&reply->parent);
    buf_finish(&reply->waiting);
    store_read_finish(&reply->children.read);
    free(reply);
}

/* ---- the reply ---- */

struct slice run_reply_url(struct api_call *call, const struct bytes *name,
                           const struct bytes *type, struct buf *url)
{
    if (!name || !slice_is(bytes_slice(type), "application/store"))
        return (struct slice){ 0 };
    packet_url(call, call->account, "GET", bytes_slice(name), url);
    return buf_slice(url);
}

/* Hides the same fields of the relatives as of the run itself. */
static void hide(struct run_reply *reply)
{
    uint32_t hidden = hidden_fields(reply->call->identity);
    hidden_clear(hidden, &reply->run);
    hidden_clear(hidden, &reply->root);
    hidden_clear(hidden, &reply->parent);
    for (size_t i = 0; i < reply->children.count; i++)
        hidden_clear(hidden, &reply->children.runs[i]);
}

static void give_up(struct run_reply *reply, enum err status)
{
    api_reply_error(reply->call, status);
    run_reply_finish(reply);
}

static void send(struct run_reply *reply)
{
    struct api_call *call = reply->call;
    enum err full = quotas_release_response(call);
    if (full) {
        give_up(reply, full);
        return;
    }
    const struct run *run = &reply->run;
    struct buf payload_url = { 0 }, output_url = { 0 }, schedule = { 0 };
    struct rope body = { 0 };
    rope_clear(&body);
    hide(reply);
    schedule_body_brief(call, bytes_slice(run_rare(run)->schedule), &schedule);
    struct run_details details = {
        .root = reply->root.id[0] ? &reply->root : NULL,
        .parent = reply->parent.id[0] ? &reply->parent : NULL,
        .children = reply->children.runs,
        .child_count = reply->children.count,
        .payload_url =
            run_reply_url(call, run->payload, run_rare(run)->payload_type, &payload_url),
        .output_url =
            run_reply_url(call, run->output, run_rare(run)->output_type, &output_url),
        .schedule = buf_slice(&schedule),
        .waiting = buf_slice(&reply->waiting),
        .hides_limits = hidden_fields(call->identity),
    };

    run_body_whole(run, call->vocabulary, &details, &body.text);
    if (reply->seq)
        api_add_seq(call, reply->seq);
    api_reply_json_rope(call, 200, &body);
    rope_finish(&body);
    buf_finish(&payload_url);
    buf_finish(&output_url);
    buf_finish(&schedule);
    run_reply_finish(reply);
}

/* ---- children ---- */

static void on_children(struct store_read *read, enum store_status status)
{
    struct run_reply *reply = container_of(read, struct run_reply, children.read);
    if (status)
        give_up(reply, err_of_store(status));
    else
        send(reply);
}

static void find_children(struct run_reply *reply)
{
    struct environment *env = reply->call->env;
    struct slice id = slice_of(reply->run.id);
    if (!reply->run.attempt && !environment_children(env, id)) {
        send(reply);
        return;
    }
    reply->children = (struct store_list){ .read = { READ_LIST, env->number, on_children },
                                           .filter = { .is_test = -1, .parent = id },
                                           .limit = CHILDREN_MAX };
    env->store->ops->read(env->store, &reply->children.read);
}

/* ---- root and parent ---- */

static void on_parent(struct run_read *read, enum err status)
{
    struct run_reply *reply = container_of(read, struct run_reply, read);
    if (!status)
        status = quotas_hold_run(reply->call, read);
    if (status && status != ERR_NOT_FOUND) {
        give_up(reply, status);
        return;
    }
    if (!status)
        run_copy(&reply->parent, read->run);
    find_children(reply);
}

static void find_parent(struct run_reply *reply)
{
    struct slice id = bytes_slice(run_rare(&reply->run)->parent);
    if (!id.len) {
        find_children(reply);
    } else if (slice_is(id, reply->root.id)) {
        run_copy(&reply->parent, &reply->root);
        find_children(reply);
    } else {
        run_read_begin(reply->call->env, id, &reply->read, on_parent);
    }
}

static void on_root(struct run_read *read, enum err status)
{
    struct run_reply *reply = container_of(read, struct run_reply, read);
    if (!status)
        status = quotas_hold_run(reply->call, read);
    if (status && status != ERR_NOT_FOUND) {
        give_up(reply, status);
        return;
    }
    if (!status)
        run_copy(&reply->root, read->run);
    find_parent(reply);
}

/* ---- why the run waits ---- */

static void add_waiting(struct buf *out, const struct tracked *run,
                        const struct waiting *waiting)
{
    struct buf message = { 0 };
    waiting_explain(run, waiting, &message);
    buf_add_char(out, '{');
    members_add_text(out, "reason", slice_of(waiting_name(waiting->reason)));
    members_add_time(out, "since", waiting->since);
    members_add_time(out, "until", waiting->until);
    if (waiting->limit_name.ptr)
        members_add_text(out, "limitName", waiting->limit_name);
    if (waiting->limit_key.len)
        members_add_text(out, "limitKey", waiting->limit_key);
    if (waiting->has_limit) {
        members_add_number(out, "limit", waiting->limit);
        members_add_number(out, "running", waiting->running);
    }
    if (waiting->reserved)
        members_add_number(out, "reserved", waiting->reserved);
    if (waiting->is_in_line)
        members_add_number(out, "ahead", waiting->ahead);
    if (waiting->reason == WAITING_NO_WORKER || waiting->reason == WAITING_VERSION)
        members_add_text(out, "task", bytes_slice(run->run.task));
    members_add_text(out, "message", buf_slice(&message));
    buf_add_char(out, '}');
    buf_finish(&message);
}

/* Notes why the run waits, in the same turn as the run is copied. A token that may not
 * see the whole run does not get this: it would reveal hidden values in other words. */
static void note_waiting(struct run_reply *reply)
{
    struct api_call *call = reply->call;
    const struct tracked *run = environment_find(call->env, slice_of(reply->run.id));
    struct waiting waiting;
    if (!run || hidden_fields(call->identity))
        return;
    waiting_look(run, engine_full_quota(run->env), &waiting);
    if (waiting.reason != WAITING_FOR_NOTHING)
        add_waiting(&reply->waiting, run, &waiting);
}

void run_reply_begin(struct api_call *call, const struct run *run, uint64_t seq)
{
    struct run_reply *reply = mem_new(struct run_reply);
    call->busy = true;
    reply->call = call;
    reply->seq = seq;
    run_copy(&reply->run, run);
    note_waiting(reply);
    struct slice root = bytes_slice(run_rare(run)->root);
    if (root.len && !slice_is(root, run->id))
        run_read_begin(call->env, root, &reply->read, on_root);
    else
        find_parent(reply);
}
