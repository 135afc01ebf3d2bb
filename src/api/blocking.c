/* blocking.c - see blocking.h. */
#include "api/blocking.h"

#include "base/mem.h"

static void on_blocked(struct command *command, enum err status)
{
    struct blocking *blocking = container_of(command, struct blocking, block.command);
    free(blocking->waits);
    if (status == ERR_INVALID || status == ERR_NOT_FOUND)
        status = OK;
    blocking->done(blocking, status);
}

static void begin(struct blocking *blocking, struct api_call *call, struct slice parent,
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
    blocking->done = done;
    begin(blocking, call, parent, wait, 1);
}

/* Items that became errors have no run: their places stay empty. */
void blocking_begin_batch(struct blocking *blocking, struct api_call *call,
                          const struct batch *batch,
                          void (*done)(struct blocking *blocking, enum err status))
{
    struct wait *waits = mem_new_array(struct wait, batch->count);
    uint32_t index = 0;
    size_t failed = 0;
    for (size_t i = 0; i < batch->count; i++, index++) {
        while (failed < batch->error_count && batch->errors[failed].index == index) {
            failed++;
            index++;
        }
        waits[i] = (struct wait){ .type = WAIT_RUN,
                                  .id = slice_of(batch->runs[i].id),
                                  .batch = slice_of(batch->id),
                                  .index = index };
    }
    blocking->done = done;
    begin(blocking, call, bytes_slice(batch->parent), waits, batch->count);
}
