/* bulk_cancel.c - cancels the runs of a slice.
 *
 * After a crash between the cancels and the commit of the document, the slice is repeated:
 * a run that this same action has canceled counts as a success. */
#include "api/bulk/bulk_work.h"

static bool was_ours(const struct run *run, const char *action)
{
    return run->status == RUN_CANCELED &&
           slice_is(bytes_slice(run_rare(run)->bulk), action);
}

static void on_canceled(struct command *command, enum err status)
{
    struct bulk_cancel *op = container_of(command, struct bulk_cancel, cancel.command);
    struct bulk_queue *queue = op->queue;
    bool is_done = !status && (command->seq || was_ours(command->run, queue->now->id));

    if (is_done)
        queue->next.success++;
    else if (!status || status == ERR_NOT_FOUND || status == ERR_CONFLICT)
        queue->next.failure++;
    else
        queue->at++; /* the store failed: counts the runs to retry */
    if (--queue->waiting > 0)
        return;
    if (queue->at)
        bulk_try_again(queue);
    else
        bulk_write_progress(queue);
}

void bulk_cancel_slice(struct bulk_queue *queue)
{
    snprintf(queue->reason, sizeof(queue->reason), "Canceled by bulk action %s",
             queue->now->id);
    queue->waiting = queue->count;
    queue->at = 0;
    memcpy(queue->next.after, queue->ids[queue->count - 1], ID_MAX);
    for (size_t i = 0; i < queue->count; i++) {
        struct bulk_cancel *op = &queue->cancels[i];
        *op = (struct bulk_cancel){ .queue = queue,
                                    .cancel.reason = queue->reason,
                                    .cancel.bulk = slice_of(queue->now->id) };
        run_cancel(queue->bulks->engine, queue->env, slice_of(queue->ids[i]), &op->cancel,
                   on_canceled);
    }
}
