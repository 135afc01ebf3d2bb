/* blocking.c - adds one wait per triggered run to its parent. */
#include "api/triggers/blocking.h"

#include "base/mem.h"

static void on_blocked(struct command *command, enum err status)
{
    struct blocking *blocking = container_of(command, struct blocking, block.command);
    free(blocking->waits);
    free(blocking->names);
    if (status == ERR_INVALID || status == ERR_NOT_FOUND)
        status = OK;
    blocking->done(blocking, status);
}

void blocking_begin(struct blocking *blocking, struct api_call *call, struct slice parent,
                    struct wait *waits, size_t count)
{
    blocking->waits = waits;
    blocking->block.waits = waits;
    blocking->block.count = count;
    run_block(api_engine(call->api), call->env, parent, &blocking->block, on_blocked);
}

void blocking_begin_run(struct blocking *blocking, struct api_call *call,
                        struct slice parent, struct slice child,
                        void (*done)(struct blocking *blocking, enum err status))
{
    struct wait *wait = mem_new(struct wait);
    wait->type = WAIT_RUN;
    wait->id = child;
    blocking->names = NULL;
    blocking->done = done;
    blocking_begin(blocking, call, parent, wait, 1);
}
