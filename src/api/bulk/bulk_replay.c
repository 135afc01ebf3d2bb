/* bulk_replay.c - replays the runs of a slice.
 *
 * It reads the runs one by one, because payloads can be large, and creates the new runs
 * in one commit with the action's progress. */
#include "api/bulk/bulk_work.h"

#include "api/runs/run_changes.h"
#include "core/fleet/fleet.h"
#include <assert.h>

enum { SLICE_BYTES = 4 << 20 };

/* Frees the items, whether or not a trigger has begun with them. */
static void drop_items(struct bulk_queue *queue)
{
    for (size_t i = 0; i < queue->item_count; i++)
        limits_discount_set(&queue->env->queues, queue->items[i].counted);
    queue->trigger.items = queue->items;
    queue->trigger.count = queue->item_count;
    trigger_op_finish(&queue->trigger);
    bytes_clear(&queue->document.name);
    bytes_clear(&queue->document.body);
    queue->item_count = 0;
}

static void on_triggered(struct trigger_op *op, enum err status)
{
    struct bulk_queue *queue = container_of(op, struct bulk_queue, trigger);
    size_t count = queue->item_count;
    drop_items(queue);
    if (!status) {
        bulk_slice_written(queue);
    } else if (status == ERR_RULE) { /* the environment's queue is full */
        queue->next.success -= count;
        queue->next.failure += count;
        bulk_write_progress(queue);
    } else {
        bulk_try_again(queue);
    }
}

static void trigger_items(struct bulk_queue *queue)
{
    struct bulk_action *action = queue->now;
    assert(queue->at > 0); /* a slice has ids */
    memcpy(queue->next.after, queue->ids[queue->at - 1], ID_MAX);
    queue->next.success += queue->item_count;
    if (!queue->item_count) {
        drop_items(queue);
        bulk_write_progress(queue);
        return;
    }
    queue->document = (struct document){ .kind = DOC_BULK,
                                         .version = action->version,
                                         .name = bytes_create(slice_of(action->id)),
                                         .body = bulk_write(action, &queue->next) };
    queue->trigger.items = queue->items;
    queue->trigger.count = queue->item_count;
    queue->trigger.batch = &queue->document;
    queue->trigger.done = on_triggered;
    enum err refused = trigger_begin(queue->bulks->engine, queue->env, &queue->trigger);
    if (refused)
        on_triggered(&queue->trigger, refused);
}

/* Another run of the slice may still be replayed if there are too many sets of limits and gates
 * for this one. */
static bool counts(struct bulk_queue *queue, struct trigger *item)
{
    struct slice limits = bytes_slice(run_rare(&item->run)->limits);
    return limits_count_set(&queue->env->queues, limits, &item->counted);
}

static bool add_item(struct bulk_queue *queue, const struct run *old)
{
    struct trigger *item = &queue->items[queue->item_count++];
    const struct trigger_place place = { .workers = queue->env->fleet->workers,
                                         .queues = &queue->env->queues,
                                         .now_ms = loop_wall_ms(queue->env->loop) };
    struct failure why;

    *item = (struct trigger){ 0 };
    if (run_replay_plain(old, &place, item, &why) || !counts(queue, item)) {
        run_finish(&item->run);
        queue->item_count--;
        return false;
    }
    struct run_rare *rare = run_rare_edit(&item->run);
    if (queue->now->region)
        bytes_set(&rare->region, queue->now->region);
    rare->bulk = bytes_create_shared(slice_of(queue->now->id));
    queue->bytes += run_packet_bytes(&item->run);
    return true;
}

static void read_next(struct bulk_queue *queue);

static void on_read(struct run_read *read, enum err status)
{
    struct bulk_queue *queue = container_of(read, struct bulk_queue, read);
    if (queue->bulks->stopped || (status && status != ERR_NOT_FOUND)) {
        drop_items(queue);
        bulk_try_again(queue);
        return;
    }
    queue->at++;
    if (status || !add_item(queue, read->run))
        queue->next.failure++;
    read_next(queue);
}

/* Reads the next run. Runs beyond SLICE_BYTES are left for the next slice. */
static void read_next(struct bulk_queue *queue)
{
    if (queue->at == queue->count || queue->bytes >= SLICE_BYTES)
        trigger_items(queue);
    else
        run_read_begin(queue->env, slice_of(queue->ids[queue->at]), &queue->read, on_read);
}

void bulk_replay_slice(struct bulk_queue *queue)
{
    queue->trigger = (struct trigger_op){ .packets_as_they_are = true };
    queue->item_count = queue->at = queue->bytes = 0;
    read_next(queue);
}
