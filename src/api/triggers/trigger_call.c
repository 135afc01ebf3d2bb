/* trigger_call.c - request claims, one-time tokens and the parent lookup of triggers. */
#include "api/triggers/trigger_call.h"

#include "api/triggers/trigger_options.h"
#include "core/engine/run_commands.h"
#include "core/fleet/fleet.h"

struct trigger_place trigger_call_place(const struct api_call *call)
{
    return (struct trigger_place){
        .workers = call->env->fleet->workers,
        .queues = &call->env->queues,
        .now_ms = loop_wall_ms(engine_loop(api_engine(call->api))),
        .is_dev = call->account->type == ENVIRONMENT_DEV,
    };
}

void trigger_call_claims(struct api_call *call, struct slice kind, struct trigger_op *op)
{
    const struct identity *who = call->identity;
    op->request_key = api_request_claim(call, kind);
    if (who->one_time) {
        op->one_time_token =
            bytes_create((struct slice){ (const char *)who->hash, sizeof(who->hash) });
        op->token_expires_at = who->expires_at;
    }
}

void trigger_call_refused(struct api_call *call, const struct trigger_op *op,
                          enum err status, struct slice what)
{
    if (op->token_used)
        explain(&call->why, status,
                "Cannot trigger %.*s with a one-time use token as it has already been "
                "used.",
                SLICE_ARG(text_clip(what)));
    else if (op->why.code == status)
        call->why = op->why;
    api_reply_error(call, status);
}

/* ---- the parent ---- */

static enum err check_parent(struct api_call *call, const struct run *parent,
                             struct slice id, enum err status)
{
    if (status == ERR_NOT_FOUND)
        return explain(&call->why, ERR_RULE,
                       "The parent run '%.*s' does not exist in this environment",
                       SLICE_ARG(text_clip(id)));
    if (status)
        return status;
    if (api_check_run_scope(call, "write", parent))
        return ERR_FORBIDDEN;
    if (run_is_final(parent))
        return explain(&call->why, ERR_RULE,
                       "The parent run '%s' has finished; it cannot trigger runs",
                       parent->id);
    return OK;
}

static void on_parent(struct run_read *read, enum err status)
{
    struct parent_lookup *lookup = container_of(read, struct parent_lookup, read);
    const struct run *parent = read->run;

    status = check_parent(lookup->call, parent, bytes_slice(lookup->id), status);
    if (!status) {
        struct bytes *root = run_rare(parent)->root;
        bytes_set(&lookup->root, root ? root : lookup->id);
        lookup->queue_position = parent->queue_position;
        lookup->depth = (uint16_t)(parent->depth + (parent->depth < UINT16_MAX));
    }
    lookup->done(lookup, status);
}

void parent_lookup_begin(struct parent_lookup *lookup, struct api_call *call,
                         struct slice id,
                         void (*done)(struct parent_lookup *lookup, enum err status))
{
    lookup->call = call;
    lookup->done = done;
    lookup->id = bytes_create(id);
    run_read_begin(call->env, id, &lookup->read, on_parent);
}

void parent_lookup_finish(struct parent_lookup *lookup)
{
    bytes_clear(&lookup->id);
    bytes_clear(&lookup->root);
}

void parent_lookup_adopt(const struct parent_lookup *lookup, bool resume, struct run *child)
{
    if (!lookup->id)
        return;
    struct run_rare *rare = run_rare_edit(child);
    bytes_set(&rare->parent, lookup->id);
    bytes_set(&rare->root, lookup->root);
    child->depth = lookup->depth;
    child->resume_parent = resume;
    if (resume) /* the child goes ahead of runs queued after its parent */
        child->queue_position = lookup->queue_position;
}
