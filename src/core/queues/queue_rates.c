/* queue_rates.c - the token buckets of queues, of limits and of their keys. */
#include "core/queues/queue_rates.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"
#include "core/queues/queue_parts.h"

enum { REFILLED_AT_ONCE = 256 };

/* ---- a bucket ---- */

static struct rate rate_of(const struct rate_bucket *bucket)
{
    const struct queue_settings *settings = &bucket->queue->settings;
    return bucket->subqueue ? settings->key_rate : settings->total_rate;
}

static int64_t as_ms(int64_t ns)
{
    return (ns + RATE_NS_PER_MS - 1) / RATE_NS_PER_MS;
}

/* Refreshes what is offered of a queue, or with a limit, as a whole. */
static void refresh_closed(struct queues *queues, struct queue *queue)
{
    bool is_full = queues->rates && queues->rates->is_full;
    bool is_closed = (queue->bucket && queue->bucket->is_dry) ||
                     (is_full && queue->settings.key_rate.starts);
    if (is_closed == queue->is_closed)
        return;
    queue->is_closed = is_closed;
    queue_refresh_total(queues, queue);
}

static void refresh_names(struct queues *queues, struct queue_names *names)
{
    size_t at = 0;
    for (struct queue *queue; (queue = table_next(&names->by_name, &at));)
        if (queue->settings.key_rate.starts)
            refresh_closed(queues, queue);
}

/* Counts the buckets of keys: one more (1), or one less (-1). */
static void count_keys(struct queues *queues, int more)
{
    struct queue_rates *rates = queues->rates;
    rates->keys += (uint32_t)more;
    bool is_full = rates->is_full ? rates->keys > RATE_KEYS_MAX - RATE_KEYS_MAX / 8
                                  : rates->keys >= RATE_KEYS_MAX;
    if (is_full == rates->is_full)
        return;
    rates->is_full = is_full;
    refresh_names(queues, &queues->own);
    refresh_names(queues, &queues->limits);
}

static void set_dry(struct queues *queues, struct rate_bucket *bucket, bool is_dry)
{
    if (is_dry == bucket->is_dry)
        return;
    bucket->is_dry = is_dry;
    if (!bucket->subqueue) {
        refresh_closed(queues, bucket->queue);
        return;
    }
    queue_check_keeper(queues, bucket->queue);
    queue_refresh_pool(queues, bucket->subqueue);
}

static void free_bucket(struct queues *queues, struct rate_bucket *bucket)
{
    bool is_of_key = bucket->subqueue;
    set_dry(queues, bucket, false);
    rate_bucket_free(queues, bucket);
    if (is_of_key)
        count_keys(queues, -1);
}

/* Brings the bucket up to date, or frees it if it is full or its rate was taken away. */
static void settle(struct queues *queues, struct rate_bucket *bucket, int64_t now_ms)
{
    struct rate rate = rate_of(bucket);
    int64_t now = now_ms * RATE_NS_PER_MS;
    int64_t latest = rate.starts ? now + rate_capacity(rate) : now;
    if (bucket->full_at > latest) /* another rate was set, or the clock set back */
        bucket->full_at = latest;
    if (bucket->full_at <= now) {
        free_bucket(queues, bucket);
        return;
    }
    int64_t opens_at = rate_opens_at(rate, bucket->full_at);
    bool is_dry = opens_at > now;
    timers_set(&queues->rates->next, &bucket->timer, queues->rates->kind,
               as_ms(is_dry ? opens_at : bucket->full_at));
    set_dry(queues, bucket, is_dry);
}

static void on_due(struct timer *timer)
{
    struct rate_bucket *bucket = container_of(timer, struct rate_bucket, timer);
    settle(bucket->queues, bucket, bucket->queues->rates->now_ms);
}

static void make_rates(struct queues *queues)
{
    if (queues->rates)
        return;
    queues->rates = mem_new(struct queue_rates);
    timers_init(&queues->rates->next);
    queues->rates->kind = timers_kind(&queues->rates->next, on_due);
}

/* subqueue: NULL for the bucket of all keys. */
static struct rate_bucket *bucket_of(struct queues *queues, struct queue *queue,
                                     struct subqueue *subqueue)
{
    struct rate_bucket **bucket = subqueue ? &subqueue->bucket : &queue->bucket;
    if (*bucket)
        return *bucket;
    make_rates(queues);
    *bucket = mem_new(struct rate_bucket);
    **bucket =
        (struct rate_bucket){ .queues = queues, .queue = queue, .subqueue = subqueue };
    if (subqueue)
        count_keys(queues, 1);
    return *bucket;
}

/* ---- the buckets of an item ---- */

/* Buckets of an item are those of these queues and limits, and of these subqueues. */
struct needed {
    struct queue *queues[1 + SLOT_SET_MAX];
    struct subqueue *pools[1 + SLOT_SET_MAX];
    uint32_t queue_count, pool_count;
};

static struct needed needed_by(struct subqueue *own, const struct slot_demand *demand)
{
    const struct slot_set *set = slot_demand_set(demand);
    struct needed needed = { .queues[0] = own->queue, .pools[0] = own, .queue_count = 1 };
    for (uint32_t i = 0; i < slot_set_count(set); i++)
        if (set->limits[i] != own->queue)
            needed.queues[needed.queue_count++] = set->limits[i];
    needed.pool_count = 1 + slot_demand_pools(demand, own, &needed.pools[1]);
    return needed;
}

static void take(struct queues *queues, struct rate_bucket *bucket, int64_t now_ms)
{
    bucket->full_at = rate_take(rate_of(bucket), bucket->full_at, now_ms * RATE_NS_PER_MS);
    settle(queues, bucket, now_ms);
}

void queues_take_tokens(struct queues *queues, const struct queue_item *item,
                        int64_t now_ms)
{
    const struct needed needed = needed_by(item->subqueue, item->demand);
    for (uint32_t i = 0; i < needed.queue_count; i++)
        if (needed.queues[i]->settings.total_rate.starts)
            take(queues, bucket_of(queues, needed.queues[i], NULL), now_ms);
    for (uint32_t i = 0; i < needed.pool_count; i++)
        if (needed.pools[i]->queue->settings.key_rate.starts)
            take(queues, bucket_of(queues, needed.pools[i]->queue, needed.pools[i]),
                 now_ms);
}

static struct subqueue *find_subqueue(const struct queue *queue, struct slice key)
{
    return table_find(&queue->subqueues, queue_name_present(key));
}

static struct queue *find_queue(const struct queues *queues, struct rate_place place)
{
    return queue_find(place.is_limit ? &queues->limits : &queues->own, place.name);
}

/* Returns NULL for a bucket that is only left to be freed. Accepts NULL. */
static struct rate_bucket *with_rate(struct rate_bucket *bucket)
{
    return bucket && rate_of(bucket).starts ? bucket : NULL;
}

/* Returns NULL if the bucket is full, or there is none. */
static struct rate_bucket *find_bucket(const struct queues *queues, struct rate_place place)
{
    const struct queue *queue = find_queue(queues, place);
    if (!queue || !place.key.ptr)
        return queue ? queue->bucket : NULL;
    const struct subqueue *subqueue = find_subqueue(queue, place.key);
    return subqueue ? with_rate(subqueue->bucket) : NULL;
}

void queues_return_token(struct queues *queues, struct rate_place place, int64_t now_ms)
{
    struct rate_bucket *bucket = find_bucket(queues, place);
    if (!bucket)
        return;
    bucket->full_at -= rate_interval(rate_of(bucket));
    settle(queues, bucket, now_ms);
}

static struct rate_figures figures_of(const struct rate_bucket *bucket)
{
    const struct queue *queue = bucket->queue;
    struct slice key =
        bucket->subqueue ? subqueue_key(bucket->subqueue) : (struct slice){ 0 };
    return (struct rate_figures){ .place = { queue->is_limit, queue_key(queue), key },
                                  .rate = rate_of(bucket),
                                  .full_at = bucket->full_at };
}

size_t queues_buckets(const struct queues *queues, const struct queue_item *item,
                      struct rate_figures out[RATE_BUCKETS_MAX])
{
    size_t count = 0;
    if (!queues->rates)
        return 0;
    const struct needed needed = needed_by(item->subqueue, item->demand);
    for (uint32_t i = 0; i < needed.queue_count; i++)
        if (needed.queues[i]->bucket)
            out[count++] = figures_of(needed.queues[i]->bucket);
    for (uint32_t i = 0; i < needed.pool_count; i++)
        if (with_rate(needed.pools[i]->bucket))
            out[count++] = figures_of(needed.pools[i]->bucket);
    return count;
}

/* ---- the public part ---- */

int64_t queues_refill(struct queues *queues, int64_t now_ms)
{
    if (!queues->rates)
        return INT64_MAX;
    queues->rates->now_ms = now_ms;
    timers_run(&queues->rates->next, now_ms, REFILLED_AT_ONCE);
    return timers_next(&queues->rates->next);
}

struct rate_figures queues_bucket(const struct queues *queues, struct rate_place place)
{
    const struct queue *queue = find_queue(queues, place);
    const struct rate_bucket *bucket = find_bucket(queues, place);
    struct rate_figures figures = { .place = place,
                                    .full_at = bucket ? bucket->full_at : 0 };
    if (queue)
        figures.rate =
            place.key.ptr ? queue->settings.key_rate : queue->settings.total_rate;
    return figures;
}

void queues_restore_bucket(struct queues *queues, struct rate_place place, int64_t left_ms,
                           int64_t now_ms)
{
    struct queue *queue = find_queue(queues, place);
    if (left_ms <= 0 || !queues_bucket(queues, place).rate.starts)
        return;
    struct subqueue *subqueue = place.key.ptr ? queue_subqueue(queue, place.key) : NULL;
    struct rate_bucket *bucket = bucket_of(queues, queue, subqueue);
    int64_t longest = RATE_PERIOD_MAX_MS + 1;
    bucket->full_at = (now_ms + (left_ms < longest ? left_ms : longest)) * RATE_NS_PER_MS;
    settle(queues, bucket, now_ms);
}

/* Notes the bucket if it is dry, and later than the one noted before. */
static void note_dry(const struct rate_bucket *bucket, struct rate_figures *out,
                     int64_t *opens_ms)
{
    if (!bucket || !bucket->is_dry || bucket->timer.at_ms <= *opens_ms)
        return;
    *out = figures_of(bucket);
    *opens_ms = bucket->timer.at_ms;
}

bool queues_lacks_token(const struct queues *queues, const struct queue_item *item,
                        struct rate_figures *out, int64_t *opens_ms)
{
    *opens_ms = INT64_MIN;
    if (!queues->rates || item->audience == AUDIENCE_RESUMED)
        return false;
    const struct needed needed = needed_by(item->subqueue, item->share->demand);
    for (uint32_t i = 0; i < needed.queue_count; i++)
        note_dry(needed.queues[i]->bucket, out, opens_ms);
    for (uint32_t i = 0; i < needed.pool_count; i++)
        note_dry(with_rate(needed.pools[i]->bucket), out, opens_ms);
    return *opens_ms != INT64_MIN;
}

/* ---- settings ---- */

static bool is_same(struct rate a, struct rate b)
{
    return a.starts == b.starts && (!a.starts || a.period_ms == b.period_ms);
}

void rate_bucket_change(struct queues *queues, struct rate_bucket *bucket)
{
    if (!bucket)
        return;
    if (rate_of(bucket).starts)
        timers_set(&queues->rates->next, &bucket->timer, queues->rates->kind,
                   queues->rates->now_ms - !bucket->subqueue);
    else
        free_bucket(queues, bucket);
}

void queue_change_rates(struct queues *queues, struct queue *queue,
                        const struct queue_settings *was)
{
    if (!is_same(was->total_rate, queue->settings.total_rate))
        rate_bucket_change(queues, queue->bucket);
    if (!is_same(was->key_rate, queue->settings.key_rate))
        queue->has_stale_rate |= queues->rates && queues->rates->keys;
    refresh_closed(queues, queue);
}
