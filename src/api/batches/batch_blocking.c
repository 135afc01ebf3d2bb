/* batch_blocking.c - makes a parent wait for the items of a batch.
 *
 * An item that became an error has no run; the wait for it ends at once. */
#include "api/batches/batch_blocking.h"

#include "base/mem.h"

/* Names an item without a run after its batch and index: the same on a repeated request. */
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
    blocking_begin(blocking, call, bytes_slice(batch->parent), waits, count);
}
