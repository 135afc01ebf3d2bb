/* waitpoint_end.c - load, write what completes it, tell who waits. Nothing is written for a
 * token whose timeout has passed. */
#include "engine/waitpoint_end.h"

#include "base/log.h"
#include "engine/state.h"
#include "engine/waits.h"

enum err waitpoint_end_check(const struct environment *env, struct slice output,
                             struct failure *why)
{
    return output.len > WAITPOINT_OUTPUT_SMALL ? engine_check_quota(env, output.len, why)
                                               : OK;
}

static void finish(struct waitpoint_end *op, enum err status)
{
    environment_release(op->env);
    bytes_clear(&op->load.name);
    bytes_clear(&op->output);
    op->done(op, status);
}

static void on_written(struct document_write *write, enum err status)
{
    struct waitpoint_end *op = container_of(write, struct waitpoint_end, write);
    if (!status) {
        log_decision("waitpoint completed", op->env->id, NULL, "somebody completed it",
                     "waitpoint", log_slice(bytes_slice(op->load.name)), NULL);
        waits_end(op->engine, op->env, bytes_slice(op->load.name));
    }
    op->was_over = status == ERR_CONFLICT; /* somebody else has completed it meanwhile */
    finish(op, op->was_over ? OK : status);
}

static void complete(struct waitpoint_end *op, struct waitpoint *waitpoint)
{
    waitpoint->completed_at = loop_wall_ms(op->engine->loop);
    if (op->output)
        waitpoint_set_output(waitpoint, bytes_slice(op->output));
    op->change = waitpoint_change(waitpoint, op->env->number);
    documents_write_begin(op->engine, &op->change, 1, &op->write, on_written);
}

static void on_loaded(struct store_load *load, enum store_status status)
{
    struct waitpoint_end *op = container_of(load, struct waitpoint_end, load);
    struct waitpoint waitpoint;
    enum err err = err_of_store(status);
    op->engine->reads--;
    if (!err) {
        err = waitpoint_read(&load->document, &waitpoint);
        document_finish(&load->document);
    }
    if (err) {
        finish(op, err);
        return;
    }
    if (waitpoint_is_over(&waitpoint, loop_wall_ms(op->engine->loop))) {
        /* By a write that was reported as failed, and that nobody was told of. */
        waits_end(op->engine, op->env, bytes_slice(op->load.name));
        op->was_over = true;
        finish(op, OK);
    } else {
        complete(op, &waitpoint);
    }
    waitpoint_finish(&waitpoint);
}

void waitpoint_end_begin(struct engine *engine, struct environment *env, struct slice id,
                         struct slice output, struct waitpoint_end *op,
                         void (*done)(struct waitpoint_end *op, enum err status))
{
    *op = (struct waitpoint_end){ .engine = engine, .env = env, .done = done };
    environment_hold(env);
    if (output.ptr)
        op->output = bytes_create(output);
    op->load = (struct store_load){ .env = env->number,
                                    .is_document = true,
                                    .kind = DOC_WAITPOINT,
                                    .name = bytes_create(id),
                                    .done = on_loaded };
    engine->reads++;
    engine->store->ops->load(engine->store, &op->load);
}
