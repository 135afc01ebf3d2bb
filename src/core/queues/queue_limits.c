/* queue_limits.c - the limits of queues and of keys, limits with names, and their settings. */
#include "core/queues/queue_parts.h"

#include <assert.h>
#include <ctype.h>

#include "core/queues/queue_reserve.h"

enum { LIMIT_NAME_MAX = 128 };

/* ---- settings ---- */

void queues_register(struct queues *queues, struct slice queue)
{
    queue_named(&queues->own, queue)->registered++;
}

void queues_set_limit(struct queues *queues, struct slice queue, uint32_t limit)
{
    struct queue *q = queue_named(&queues->own, queue);
    uint32_t was = queue_limit_of(q);
    q->registered++;
    q->base = limit;
    queue_refresh_all(queues, q, was);
}

void queues_change_limit(struct queues *queues, struct slice queue, uint32_t limit)
{
    struct queue *q = queue_find(&queues->own, queue);
    if (!q || !q->registered || q->base == limit)
        return;
    uint32_t was = queue_limit_of(q);
    q->base = limit;
    queue_refresh_all(queues, q, was);
}

void queues_set_total(struct queues *queues, struct slice queue, uint32_t total)
{
    struct queue *q = queue_find(&queues->own, queue);
    if (!q || !q->registered || q->total == total)
        return;
    q->total = total;
    queue_refresh_all(queues, q, queue_limit_of(q));
}

static void forget(struct queues *queues, struct queue *queue)
{
    assert(queue && queue->registered);
    if (--queue->registered)
        return;
    uint32_t was = queue_limit_of(queue);
    queue->base = queue->total = UINT32_MAX;
    queue_refresh_all(queues, queue, was);
    queue_free_if_unused(queues, queue);
}

void queues_forget_limit(struct queues *queues, struct slice queue)
{
    forget(queues, queue_find(&queues->own, queue));
}

static void configure(struct queues *queues, struct queue *queue,
                      const struct queue_settings *settings)
{
    struct quota *configured = &queue_names_of(queues, queue)->configured;
    const struct queue_settings before = queue->settings;
    uint32_t was = queue_limit_of(queue);
    quota_release(configured, queue_is_configured(queue));
    queue->settings = *settings;
    quota_take(configured, queue_is_configured(queue));
    queue_change_rates(queues, queue, &before);
    queue_refresh_all(queues, queue, was);
    queue_free_if_unused(queues, queue);
}

void queues_configure(struct queues *queues, struct slice queue,
                      const struct queue_settings *settings)
{
    configure(queues, queue_named(&queues->own, queue), settings);
}

static struct queue_figures figures_of(const struct queue *queue)
{
    if (!queue)
        return (struct queue_figures){ .limit = UINT32_MAX,
                                       .base = UINT32_MAX,
                                       .total = UINT32_MAX,
                                       .total_base = UINT32_MAX };
    return (struct queue_figures){
        .running = queue->running,
        .waiting = queue->waiting,
        .reserved = reserve_count(queue),
        .limit = queue_limit_of(queue),
        .base = queue->base,
        .total = queue_total_of(queue),
        .total_base = queue->total,
        .settings = queue->settings,
        .known = true,
        .registered = queue->registered > 0,
    };
}

struct queue_figures queues_figures(const struct queues *queues, struct slice queue)
{
    return figures_of(queue_find(&queues->own, queue));
}

static struct slice name_at(const struct queue_names *names, uint64_t place)
{
    const struct ranked *found = ranking_at(&names->names, place);
    return found ? queue_place_key(found) : (struct slice){ 0 };
}

struct slice queues_name_at(const struct queues *queues, uint64_t place)
{
    return name_at(&queues->own, place);
}

/* ---- limits ---- */

bool limits_is_name(struct slice name)
{
    for (size_t i = 0; i < name.len; i++)
        if (!isalnum((unsigned char)name.ptr[i]) && name.ptr[i] != '-' &&
            name.ptr[i] != '_')
            return false;
    return name.len > 0 && name.len <= LIMIT_NAME_MAX;
}

void limits_register(struct queues *queues, struct slice limit)
{
    queue_named(&queues->limits, limit)->registered++;
}

void limits_change(struct queues *queues, struct slice limit, uint32_t per_key,
                   uint32_t total)
{
    struct queue *found = queue_find(&queues->limits, limit);
    bool is_same = found && found->base == per_key && found->total == total;
    if (!found || !found->registered || is_same)
        return;
    uint32_t was = queue_limit_of(found);
    found->base = per_key;
    found->total = total;
    queue_refresh_all(queues, found, was);
}

void limits_forget(struct queues *queues, struct slice limit)
{
    forget(queues, queue_find(&queues->limits, limit));
}

void limits_configure(struct queues *queues, struct slice limit,
                      const struct queue_settings *settings)
{
    configure(queues, queue_named(&queues->limits, limit), settings);
}

static void set_override(struct queues *queues, struct subqueue *pool, uint32_t per_key,
                         int64_t until)
{
    struct table *overridden = &pool->queue->overridden;
    queues->limits.overrides -= (uint32_t)overridden->count;
    table_remove(overridden, subqueue_key(pool));
    if (per_key != UINT32_MAX)
        table_insert(overridden, pool);
    queues->limits.overrides += (uint32_t)overridden->count;
    pool->override = per_key;
    pool->override_until = until;
    queue_check_keeper(queues, pool->queue);
    queue_refresh_pool(queues, pool);
    subqueue_free_if_empty(queues, pool);
}

void limits_override_key(struct queues *queues, struct slice limit,
                         const struct limit_override *override)
{
    struct queue *found = queue_named(&queues->limits, limit);
    set_override(queues, queue_subqueue(found, override->key), override->per_key,
                 override->until);
}

static struct limit_override override_of(const struct subqueue *pool)
{
    return (struct limit_override){ subqueue_key(pool), pool->override,
                                    pool->override_until };
}

bool limits_next_override(const struct queues *queues, struct slice limit, size_t *at,
                          struct limit_override *out)
{
    const struct queue *found = queue_find(&queues->limits, limit);
    const struct subqueue *pool = found ? table_next(&found->overridden, at) : NULL;
    if (pool)
        *out = override_of(pool);
    return pool;
}

/* Takes back the overrides of one limit that have ended, and lowers next to the end of each
 * that it passes. Removing a pool may hide others from this pass. Returns true if it took
 * any back. */
static bool end_overrides_of(struct queues *queues, struct queue *limit, int64_t now_ms,
                             int64_t *next)
{
    bool ended = false;
    size_t at = 0;
    for (struct subqueue *pool; (pool = table_next(&limit->overridden, &at));) {
        if (pool->override_until <= now_ms) {
            set_override(queues, pool, UINT32_MAX, 0);
            ended = true;
        } else if (pool->override_until < *next) {
            *next = pool->override_until;
        }
    }
    return ended;
}

int64_t limits_end_overrides(struct queues *queues, int64_t now_ms)
{
    int64_t next = INT64_MAX;
    for (bool again = queues->limits.overrides > 0; again;) {
        size_t at = 0;
        again = false;
        for (struct queue *limit; (limit = table_next(&queues->limits.by_name, &at));) {
            limit->uses++; /* it stays while its pools are visited */
            again |= end_overrides_of(queues, limit, now_ms, &next);
            limit->uses--;
            queue_free_if_unused(queues, limit);
        }
    }
    return next;
}

struct queue_figures limits_figures(const struct queues *queues, struct slice limit)
{
    return figures_of(queue_find(&queues->limits, limit));
}

/* ---- what uses a queue or limit ---- */

static const struct subqueue *pool_of(const struct queue *queue, struct slice key)
{
    return queue ? table_find(&queue->subqueues, queue_name_present(key)) : NULL;
}

static struct queue_figures key_figures_of(const struct queue *queue,
                                           const struct subqueue *pool)
{
    struct queue_figures figures = figures_of(queue);
    figures.running = pool ? pool->running : 0;
    figures.waiting = pool ? pool->waiting : 0;
    figures.limit = pool ? subqueue_limit(pool) : figures.limit;
    figures.reserved = pool && pool->keeper ? figures.reserved : 0;
    return figures;
}

struct queue_figures limits_key_figures(const struct queues *queues, struct slice limit,
                                        struct slice key, struct limit_override *out)
{
    const struct queue *found = queue_find(&queues->limits, limit);
    const struct subqueue *pool = pool_of(found, key);
    *out = pool ? override_of(pool) : (struct limit_override){ key, UINT32_MAX, 0 };
    return key_figures_of(found, pool);
}

struct queue_figures queues_key_figures(const struct queues *queues, struct slice queue,
                                        struct slice key)
{
    const struct queue *found = queue_find(&queues->own, queue);
    const struct subqueue *subqueue = pool_of(found, key);
    struct queue_figures figures = key_figures_of(found, subqueue);
    figures.waiting = subqueue ? subqueue->in_line : 0;
    return figures;
}

static size_t keys_of(const struct queue *queue, struct slice *keys, size_t most)
{
    size_t at = 0, count = 0;
    if (!queue)
        return 0;
    while (count < most) {
        const struct subqueue *pool = table_next(&queue->overridden, &at);
        if (!pool)
            break;
        keys[count++] = subqueue_key(pool);
    }
    list_each (link, &queue->busy) {
        const struct subqueue *pool = container_of(link, struct subqueue, busy);
        if (count >= most)
            break;
        if (pool->override == UINT32_MAX)
            keys[count++] = subqueue_key(pool);
    }
    return count;
}

size_t queues_keys(const struct queues *queues, struct slice queue, struct slice *keys,
                   size_t most)
{
    return keys_of(queue_find(&queues->own, queue), keys, most);
}

size_t limits_keys(const struct queues *queues, struct slice limit, struct slice *keys,
                   size_t most)
{
    return keys_of(queue_find(&queues->limits, limit), keys, most);
}

/* Returns true if the item needs a slot of the queue or limit, or holds one. */
static bool needs(const struct queue_item *item, const struct queue *queue)
{
    const struct slot_set *set =
        item->running ? slot_demand_set(item->demand) : item->share->class->set;
    for (uint32_t i = 0; i < slot_set_count(set); i++)
        if (set->limits[i] == queue)
            return true;
    return item->subqueue->queue == queue;
}

static size_t items_of(const struct queue *queue, const struct list *line,
                       const struct queue_item **items, size_t most, size_t among)
{
    size_t count = 0;
    if (!queue)
        return 0;
    list_each (link, line) {
        const struct queue_item *item =
            container_of(link, const struct queue_item, in_line);
        if (count >= most || !among--)
            break;
        if (needs(item, queue))
            items[count++] = item;
    }
    return count;
}

size_t queues_items(const struct queues *queues, const struct list *line,
                    struct slice queue, const struct queue_item **items, size_t most,
                    size_t among)
{
    return items_of(queue_find(&queues->own, queue), line, items, most, among);
}

size_t limits_items(const struct queues *queues, const struct list *line,
                    struct slice limit, const struct queue_item **items, size_t most,
                    size_t among)
{
    return items_of(queue_find(&queues->limits, limit), line, items, most, among);
}

struct slice limits_name_at(const struct queues *queues, uint64_t place)
{
    return name_at(&queues->limits, place);
}
