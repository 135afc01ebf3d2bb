/* blocking.c - see blocking.h. */
#include "api/blocking.h"

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
    blocking->names = NULL;
    blocking->done = done;
    begin(blocking, call, parent, wait, 1);
}

/* It has no run, so it is named after its batch: the same when it is asked for again. */
static void name_error(const struct batch *batch, uint32_t index, char name[ID_MAX])
{
    const char *random = strchr(batch->id, '_');
    snprintf(name, ID_MAX, "run%s_%u", random ? random : "_", index);
}

void blocking_begin_batch(struct blocking *blocking, struct api_call *call,
                          const struct batch *batch,
                          void (*done)(struct blocking *blocking, enum err status))
{
    size_t count = batch->count + batch->error_count, failed = 0, made = 0;
    struct wait *waits = mem_new_array(struct wait, count);
    blocking->names = mem_alloc(batch->error_count * sizeof(*blocking->names) + 1);
    for (uint32_t index = 0; index < count; index++) {
        struct wait *wait = &waits[index];
        *wait =
            (struct wait){ .type = WAIT_RUN, .batch = slice_of(batch->id), .index = index };
        if (failed < batch->error_count && batch->errors[failed].index == index) {
            name_error(batch, index, blocking->names[failed]);
            wait->id = slice_of(blocking->names[failed++]);
            wait->too_large = true;
        } else {
            wait->id = slice_of(batch->runs[made++].id);
        }
    }
    blocking->done = done;
    begin(blocking, call, bytes_slice(batch->parent), waits, count);
}
