/* open_batches.c - a list in the order of their last use; there are never many. */
#include "api/open_batches.h"

#include "base/mem.h"

enum { FORGET_MS = 10 * 60 * 1000 };

struct use {
    uint32_t env;
    size_t bytes;
};

struct open_batches {
    struct loop *loop;
    size_t limit;
    struct list oldest_first; // open_batch::link
    struct use *uses;         /* per environment */
    size_t use_count;
};

void batch_item_destroy(struct batch_item *item)
{
    if (!item)
        return;
    run_finish(&item->trigger.run);
    free(item);
}

struct open_batches *open_batches_create(struct loop *loop, size_t limit)
{
    struct open_batches *open = mem_new(struct open_batches);
    open->loop = loop;
    open->limit = limit;
    list_init(&open->oldest_first);
    return open;
}

void open_batches_destroy(struct open_batches *open)
{
    if (!open)
        return;
    while (!list_empty(&open->oldest_first)) {
        struct open_batch *oldest =
            container_of(list_take(&open->oldest_first), struct open_batch, link);
        open_batches_drop(open, oldest);
    }
    free(open->uses);
    free(open);
}

/* ---- memory ---- */

static struct use *use_of(struct open_batches *open, uint32_t env)
{
    for (size_t i = 0; i < open->use_count; i++)
        if (open->uses[i].env == env)
            return &open->uses[i];
    open->uses = mem_resize(open->uses, (open->use_count + 1) * sizeof(*open->uses));
    open->uses[open->use_count] = (struct use){ .env = env };
    return &open->uses[open->use_count++];
}

static struct open_batch *oldest_idle(struct open_batches *open, uint32_t env)
{
    list_each (link, &open->oldest_first) {
        struct open_batch *batch = container_of(link, struct open_batch, link);
        if (batch->env == env && !batch->sealing)
            return batch;
    }
    return NULL;
}

bool open_batches_take(struct open_batches *open, uint32_t env, size_t bytes)
{
    struct use *use = use_of(open, env);
    while (use->bytes + bytes > open->limit) {
        struct open_batch *idle = oldest_idle(open, env);
        if (!idle)
            return false;
        open_batches_drop(open, idle);
    }
    use->bytes += bytes;
    return true;
}

void open_batches_give(struct open_batches *open, uint32_t env, size_t bytes)
{
    use_of(open, env)->bytes -= bytes;
}

/* ---- batches ---- */

static void forget_old(struct open_batches *open)
{
    int64_t before = loop_now_ms(open->loop) - FORGET_MS;
    struct open_batch *old = NULL;
    do {
        if (old)
            open_batches_drop(open, old);
        old = NULL;
        list_each (link, &open->oldest_first) {
            struct open_batch *batch = container_of(link, struct open_batch, link);
            if (!batch->sealing && batch->touched_ms < before) {
                old = batch;
                break;
            }
        }
    } while (old);
}

static struct open_batch *find(struct open_batches *open, uint32_t env, const char *id)
{
    list_each (link, &open->oldest_first) {
        struct open_batch *batch = container_of(link, struct open_batch, link);
        if (batch->env == env && !strcmp(batch->id, id))
            return batch;
    }
    return NULL;
}

struct open_batch *open_batches_get(struct open_batches *open, uint32_t env, const char *id,
                                    uint32_t run_count)
{
    forget_old(open);
    struct open_batch *batch = find(open, env, id);
    if (batch) {
        list_remove(&batch->link);
    } else {
        batch = mem_new(struct open_batch);
        batch->env = env;
        snprintf(batch->id, sizeof(batch->id), "%s", id);
        batch->run_count = run_count;
        batch->items = mem_new_array(struct batch_item *, run_count);
    }
    batch->touched_ms = loop_now_ms(open->loop);
    list_append(&open->oldest_first, &batch->link);
    return batch;
}

void open_batches_drop(struct open_batches *open, struct open_batch *batch)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < batch->run_count; i++) {
        if (!batch->items[i])
            continue;
        bytes += batch->items[i]->cost;
        batch_item_destroy(batch->items[i]);
    }
    open_batches_give(open, batch->env, bytes);
    list_remove(&batch->link);
    free(batch->items);
    free(batch);
}
