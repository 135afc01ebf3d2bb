/* open_batches.c - the table of open batches, by environment and id.
 *
 * Lists in order of last use, one per environment and one of all, show which to forget
 * first. Each call with items opens at most one batch and forgets at most two expired ones,
 * so that no call has to forget thousands at once. */
#include "api/batches/open_batches.h"

#include <stdio.h>

#include "api/request/quotas.h"
#include "base/mem.h"
#include "base/slots.h"
#include "base/table.h"

enum { FORGET_MS = 10 * 60 * 1000, FORGET_AT_ONCE = 2 };

/* The open batches of one environment. */
struct use {
    struct list oldest_first; // open_batch::of_env
};

struct open_batches {
    struct loop *loop;
    struct quotas *quotas; /* borrowed */
    struct table by_key;
    struct list oldest_first; // open_batch::link
    struct slots uses;        /* struct use, by the environment's number */
};

static struct slice key_of(const void *value)
{
    return slice_of(((const struct open_batch *)value)->key);
}

void batch_item_destroy(struct batch_item *item)
{
    if (!item)
        return;
    run_finish(&item->trigger.run);
    free(item);
}

struct open_batches *open_batches_create(struct loop *loop, struct quotas *quotas)
{
    struct open_batches *open = mem_new(struct open_batches);
    open->loop = loop;
    open->quotas = quotas;
    table_init(&open->by_key, key_of);
    list_init(&open->oldest_first);
    return open;
}

void open_batches_destroy(struct open_batches *open)
{
    if (!open)
        return;
    while (!list_empty(&open->oldest_first))
        open_batches_drop(open,
                          container_of(open->oldest_first.next, struct open_batch, link));
    uint32_t at = 0;
    for (struct use *use; (use = slots_next(&open->uses, &at));)
        free(use);
    slots_finish(&open->uses);
    table_finish(&open->by_key);
    free(open);
}

/* ---- memory ---- */

/* Returns the bytes of an open batch without its items. */
static size_t cost_of(uint32_t run_count)
{
    return sizeof(struct open_batch) + run_count * sizeof(struct batch_item *);
}

static struct use *use_of(struct open_batches *open, const struct environment *env)
{
    void **place = slots_at(&open->uses, env->number);
    if (!*place) {
        struct use *use = mem_new(struct use);
        list_init(&use->oldest_first);
        *place = use;
    }
    return *place;
}

static struct open_batch *oldest_idle(const struct use *use)
{
    list_each (link, &use->oldest_first) {
        struct open_batch *batch = container_of(link, struct open_batch, of_env);
        if (!batch->sealing)
            return batch;
    }
    return NULL;
}

static struct quota *quota_of(const struct open_batches *open,
                              const struct environment *env)
{
    return &quotas_of(open->quotas, env)->batches;
}

bool open_batches_take(struct open_batches *open, const struct environment *env,
                       size_t bytes)
{
    struct use *use = use_of(open, env);
    while (!quota_has(quota_of(open, env), bytes)) {
        struct open_batch *idle = oldest_idle(use);
        if (!idle)
            return false;
        open_batches_drop(open, idle);
    }
    quota_take(quota_of(open, env), bytes);
    return true;
}

void open_batches_give(struct open_batches *open, const struct environment *env,
                       size_t bytes)
{
    quota_release(quota_of(open, env), bytes);
}

/* ---- batches ---- */

static void forget_old(struct open_batches *open)
{
    int64_t before = loop_now_ms(open->loop) - FORGET_MS;
    int forgotten = 0;
    list_each (link, &open->oldest_first) {
        struct open_batch *batch = container_of(link, struct open_batch, link);
        if (batch->touched_ms >= before || forgotten == FORGET_AT_ONCE)
            return;
        if (batch->sealing)
            continue;
        open_batches_drop(open, batch);
        forgotten++;
    }
}

static struct open_batch *open_batch_create(struct open_batches *open,
                                            struct environment *env, const char *key,
                                            uint32_t run_count)
{
    if (!open_batches_take(open, env, cost_of(run_count)))
        return NULL;
    struct open_batch *batch = mem_new(struct open_batch);
    batch->env = env;
    snprintf(batch->key, sizeof(batch->key), "%s", key);
    batch->run_count = run_count;
    batch->items = mem_new_array(struct batch_item *, run_count);
    list_init(&batch->link);
    list_init(&batch->of_env);
    table_insert(&open->by_key, batch);
    return batch;
}

struct open_batch *open_batches_get(struct open_batches *open, struct environment *env,
                                    const char *id, uint32_t run_count)
{
    char key[sizeof(((struct open_batch *)0)->key)];
    snprintf(key, sizeof(key), "%u:%s", env->number, id);
    forget_old(open);
    struct open_batch *batch = table_find(&open->by_key, slice_of(key));
    if (!batch)
        batch = open_batch_create(open, env, key, run_count);
    if (!batch)
        return NULL;
    list_remove(&batch->link);
    list_remove(&batch->of_env);
    list_append(&open->oldest_first, &batch->link);
    list_append(&use_of(open, env)->oldest_first, &batch->of_env);
    batch->touched_ms = loop_now_ms(open->loop);
    return batch;
}

void open_batches_drop(struct open_batches *open, struct open_batch *batch)
{
    size_t bytes = cost_of(batch->run_count);
    for (uint32_t i = 0; i < batch->run_count; i++) {
        if (!batch->items[i])
            continue;
        bytes += batch->items[i]->cost;
        batch_item_destroy(batch->items[i]);
    }
    open_batches_give(open, batch->env, bytes);
    table_remove(&open->by_key, slice_of(batch->key));
    list_remove(&batch->link);
    list_remove(&batch->of_env);
    free(batch->items);
    free(batch);
}

bool open_batches_forget(struct open_batches *open, const struct environment *env,
                         struct timeslice *timeslice)
{
    struct use *use = slots_get(&open->uses, env->number);
    if (!use)
        return true;
    while (!list_empty(&use->oldest_first)) {
        if (!timeslice_left(timeslice))
            return false;
        open_batches_drop(open,
                          container_of(use->oldest_first.next, struct open_batch, of_env));
    }
    free(use);
    *slots_at(&open->uses, env->number) = NULL;
    return true;
}
