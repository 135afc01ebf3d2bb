/* run_await.c - reads a run; with ?wait= holds the call until the run has ended.
 *
 * It subscribes to the end of the run before it reads the run, so that no end is missed.
 * When a held call wakes up, it starts over. */
#include "api/runs/run_await.h"

static void look(struct run_await *await);

static void run_await_finish(struct run_await *await, enum err status)
{
    if (!status)
        held_call_finish(&await->held);
    await->done(await, status);
}

static void on_over(struct held_call *held, enum err status)
{
    struct run_await *await = container_of(held, struct run_await, held);
    if (status)
        run_await_finish(await, status);
    else
        look(await);
}

static void on_read(struct run_read *read, enum err status)
{
    struct run_await *await = container_of(read, struct run_await, read);
    if (!status)
        status = api_check_run_scope(await->call, "read", read->run);
    if (!status && !run_is_final(read->run) && held_call_may_wait(&await->held)) {
        status = held_call_hold(&await->held, on_over);
        if (!status)
            return;
    }
    run_await_finish(await, status);
}

static void look(struct run_await *await)
{
    struct api_call *call = await->call;
    if (held_call_may_wait(&await->held))
        held_call_listen(&await->held, call->params[0]);
    run_read_begin(call->env, call->params[0], &await->read, on_read);
}

enum err run_await_begin(struct api_call *call, struct run_await *await,
                         void (*done)(struct run_await *await, enum err status))
{
    enum err refused = held_call_read(&await->held, call);
    if (refused)
        return refused;
    call->busy = true;
    await->call = call;
    await->done = done;
    look(await);
    return OK;
}
