/* queue_parts.c - makes and frees queues, limits, subqueues, sets and shares.
 *
 * A subqueue lives while it has an item, a queue while it has a subqueue or a setting, or
 * while a set names it: names that clients choose do not stay. A bucket that is not
 * full keeps its subqueue. */
#include "core/queues/queue_parts.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "core/queues/queue_needs.h"

/* ---- queues, limits and subqueues ---- */

struct slice queue_key(const void *value)
{
    const struct queue *queue = value;
    return (struct slice){ queue->name, queue->name_len };
}

struct slice queue_place_key(const struct ranked *place)
{
    return queue_key(container_of(place, const struct queue, place));
}

struct slice subqueue_key(const void *value)
{
    const struct subqueue *subqueue = value;
    return (struct slice){ subqueue->key, subqueue->key_len };
}

struct slice slot_demand_key(const void *value)
{
    const struct slot_demand *demand = value;
    return (struct slice){ demand->text, demand->text_len };
}

struct slice slot_set_key(const void *value)
{
    const struct slot_set *set = value;
    return (struct slice){ set->text, set->text_len };
}

struct slice slot_group_key(const void *value)
{
    const struct slot_group *group = value;
    return (struct slice){ group->text, group->text_len };
}

struct queue_names *queue_names_of(struct queues *queues, const struct queue *queue)
{
    return queue->is_limit ? &queues->limits : &queues->own;
}

struct queue *queue_find(const struct queue_names *names, struct slice name)
{
    return table_find(&names->by_name, queue_name_present(name));
}

struct queue *queue_named(struct queue_names *names, struct slice name)
{
    name = queue_name_present(name);
    struct queue *queue = table_find(&names->by_name, name);
    if (queue)
        return queue;
    queue = mem_new_flex(struct queue, name.len);
    queue->is_limit = names->are_limits;
    queue->base = queue->total = UINT32_MAX;
    queue->name_len = name.len;
    memcpy(queue->name, name.ptr, name.len);
    table_init(&queue->subqueues, subqueue_key);
    table_init(&queue->overridden, subqueue_key);
    list_init(&queue->offers);
    list_init(&queue->classes);
    list_init(&queue->groups);
    list_init(&queue->busy);
    list_init(&queue->fresh);
    list_init(&queue->stale);
    list_init(&queue->in_stale);
    table_insert(&names->by_name, queue);
    ranking_insert(&names->names, &queue->place);
    return queue;
}

struct subqueue *queue_subqueue(struct queue *queue, struct slice key)
{
    key = queue_name_present(key);
    struct subqueue *subqueue = table_find(&queue->subqueues, key);
    if (subqueue)
        return subqueue;
    subqueue = mem_new_flex(struct subqueue, key.len);
    subqueue->queue = queue;
    subqueue->override = UINT32_MAX;
    subqueue->key_len = key.len;
    memcpy(subqueue->key, key.ptr, key.len);
    list_init(&subqueue->shares);
    list_init(&subqueue->users);
    list_init(&subqueue->groups);
    list_init(&subqueue->busy);
    list_append(&queue->fresh, &subqueue->link);
    table_insert(&queue->subqueues, subqueue);
    return subqueue;
}

void queue_free(struct queue *queue)
{
    assert(queue->subqueues.count == 0);
    list_remove(&queue->in_stale);
    table_finish(&queue->subqueues);
    table_finish(&queue->overridden);
    while (!list_empty(&queue->offers)) {
        struct offer *offer = container_of(list_take(&queue->offers), struct offer, link);
        assert(list_empty(&offer->classes));
        free(offer);
    }
    free(queue);
}

/* The document of a limit may have only overrides of keys, which have ended. Its version is
 * needed to write it again. */
bool queue_is_configured(const struct queue *queue)
{
    const struct queue_settings *settings = &queue->settings;
    return settings->paused || settings->overridden || settings->total_overridden ||
           settings->singleton || settings->total_rate.starts ||
           settings->key_rate.starts || (queue->is_limit && settings->version);
}

void queue_free_if_unused(struct queues *queues, struct queue *queue)
{
    struct queue_names *names = queue_names_of(queues, queue);
    if (queue->subqueues.count > 0 || queue->registered || queue->uses ||
        queue_is_configured(queue))
        return;
    table_remove(&names->by_name, queue_key(queue));
    ranking_remove(&names->names, &queue->place);
    queue_free(queue);
}

void subqueue_free_if_empty(struct queues *queues, struct subqueue *subqueue)
{
    struct queue *queue = subqueue->queue;
    if (!list_empty(&subqueue->shares) || !list_empty(&subqueue->users) ||
        !list_empty(&subqueue->groups) || subqueue->running > 0 || subqueue->is_held ||
        subqueue->override != UINT32_MAX || subqueue->bucket)
        return;
    table_remove(&queue->subqueues, subqueue_key(subqueue));
    list_remove(&subqueue->link);
    free(subqueue);
    queue_free_if_unused(queues, queue);
}

void rate_bucket_free(struct queues *queues, struct rate_bucket *bucket)
{
    struct subqueue *subqueue = bucket->subqueue;
    timers_clear(&queues->rates->next, &bucket->timer);
    if (subqueue)
        subqueue->bucket = NULL;
    else
        bucket->queue->bucket = NULL;
    free(bucket);
    if (subqueue)
        subqueue_free_if_empty(queues, subqueue);
}

void queue_rates_finish(struct queues *queues)
{
    struct queue_rates *rates = queues->rates;
    if (!rates)
        return;
    while (rates->next.count)
        rate_bucket_free(queues,
                         container_of(rates->next.heap[1], struct rate_bucket, timer));
    timers_finish(&rates->next);
    free(rates);
    queues->rates = NULL;
}

/* ---- groups of limits ---- */

static void add_need(struct queues *queues, struct slot_group *group,
                     const struct slot_need *wanted)
{
    struct group_need *need = &group->needs[group->count++];
    struct queue_names *names = wanted->is_gate ? &queues->own : &queues->limits;
    need->group = group;
    need->limit = queue_named(names, wanted->name);
    need->limit->uses++;
    list_append(&need->limit->groups, &need->link);
    if (!wanted->is_pinned)
        return;
    need->pool = queue_subqueue(need->limit, wanted->key);
    list_append(&need->pool->groups, &need->in_pool);
}

/* Appends the text of the group of these needs. */
static void write_group(const struct slot_needs *needs, struct buf *out)
{
    for (uint32_t i = 0; i < needs->count; i++) {
        if (slot_needs_is_own(needs, i))
            continue;
        buf_add_text(out, out->len ? "," : "");
        slot_need_write(&needs->all[i], out);
    }
}

/* Returns the group with this text. Adds a reference. needs: of a missing one; NULL: it has
 * none. */
static struct slot_group *group_named(struct queues *queues, struct slice text,
                                      const struct slot_needs *needs)
{
    struct slot_group *group = table_find(&queues->groups, text);
    if (!group) {
        group = mem_new_flex(struct slot_group, text.len);
        group->text_len = text.len;
        memcpy(group->text, text.ptr, text.len);
        list_init(&group->offers);
        table_insert(&queues->groups, group);
        for (uint32_t i = 0; needs && i < needs->count; i++)
            if (!slot_needs_is_own(needs, i))
                add_need(queues, group, &needs->all[i]);
    }
    group->refs++;
    return group;
}

static void remove_need(struct queues *queues, struct group_need *need)
{
    list_remove(&need->link);
    if (need->pool) {
        list_remove(&need->in_pool);
        subqueue_free_if_empty(queues, need->pool);
    }
    need->limit->uses--;
    queue_free_if_unused(queues, need->limit);
}

static void group_unref(struct queues *queues, struct slot_group *group)
{
    if (--group->refs)
        return;
    table_remove(&queues->groups, slot_group_key(group));
    queues->crowded -= group->is_crowded;
    for (uint32_t i = 0; i < group->count; i++)
        remove_need(queues, &group->needs[i]);
    free(group);
}

/* ---- groups that count ---- */

/* Items that need no limit, or only that of their task, have the group without a text. */
static bool may_add_group(const struct queues *queues)
{
    bool has_empty = table_find(&queues->groups, SLICE(""));
    return queues->groups.count <
           queues->sets_max + queues->wide + queues->crowded + has_empty;
}

/* Returns false if there are too many groups and this is another one, unless it must count. */
static bool count_group(struct queues *queues, struct slice limits, bool must,
                        struct slot_group **counted)
{
    struct slot_needs needs;
    struct buf text = { 0 };
    *counted = NULL;
    if (!slot_demand_is_stated(limits))
        return true;
    slot_needs_read(&needs, limits);
    write_group(&needs, &text);
    struct slice group = buf_slice(&text);
    bool may =
        !group.len || must || table_find(&queues->groups, group) || may_add_group(queues);
    if (group.len && may)
        *counted = group_named(queues, group, &needs);
    slot_needs_finish(&needs);
    buf_finish(&text);
    return may;
}

bool limits_count_set(struct queues *queues, struct slice limits,
                      struct slot_group **counted)
{
    return count_group(queues, limits, false, counted);
}

struct slot_group *slot_group_counted(struct queues *queues, struct slice limits)
{
    struct slot_group *counted;
    count_group(queues, limits, true, &counted);
    return counted;
}

void limits_discount_set(struct queues *queues, struct slot_group *counted)
{
    if (counted)
        group_unref(queues, counted);
}

/* ---- sets of limits ---- */

/* Adds the queue unless it is there. */
static void add_once(struct queue **all, uint32_t *count, struct queue *queue)
{
    for (uint32_t i = 0; i < *count; i++)
        if (all[i] == queue)
            return;
    all[(*count)++] = queue;
}

/* The limit of the task alone comes first. */
static void fill_set(struct queues *queues, struct slot_set *set,
                     const struct slot_needs *needs)
{
    struct buf group = { 0 };
    for (uint32_t i = 0; i < needs->count; i++) {
        const struct slot_need *need = &needs->all[i];
        struct queue *limit =
            queue_named(need->is_gate ? &queues->own : &queues->limits, need->name);
        uint32_t before = set->count;
        add_once(set->limits, &set->count, limit);
        limit->uses += set->count - before;
        if (!need->key.ptr)
            add_once(set->keyed, &set->keyed_count, limit);
        set->own += slot_needs_is_own(needs, i);
    }
    write_group(needs, &group);
    set->group = group_named(queues, buf_slice(&group), needs);
    buf_finish(&group);
}

/* Adds a reference. */
static struct slot_set *set_of(struct queues *queues, const struct slot_needs *needs)
{
    struct buf text = { 0 };
    slot_needs_write(needs, &text);
    struct slot_set *set = table_find(&queues->sets, buf_slice(&text));
    if (!set) {
        set = mem_new_flex(struct slot_set, text.len);
        set->text_len = text.len;
        memcpy(set->text, text.ptr, text.len);
        fill_set(queues, set, needs);
        table_insert(&queues->sets, set);
    }
    set->refs++;
    buf_finish(&text);
    return set;
}

static void slot_set_unref(struct queues *queues, struct slot_set *set)
{
    if (!set || --set->refs)
        return;
    table_remove(&queues->sets, slot_set_key(set));
    group_unref(queues, set->group);
    for (uint32_t i = 0; i < set->count; i++) {
        set->limits[i]->uses--;
        queue_free_if_unused(queues, set->limits[i]);
    }
    free(set);
}

/* ---- demands ---- */

static void add_gate(struct queues *queues, struct slot_demand *demand,
                     const struct slot_need *need)
{
    demand->gates[demand->count++] =
        (struct keyed_gate){ .queue = queue_named(&queues->own, need->name),
                             .key = need->key,
                             .is_pinned = need->is_pinned };
    demand->lane_count += !need->is_pinned;
}

/* Returns true if the need names a key of a gate that very many lanes need already. */
static bool names_crowded_pool(const struct queues *queues, const struct slot_need *need)
{
    const struct queue *gate = need->key.ptr ? queue_find(&queues->own, need->name) : NULL;
    const struct subqueue *pool = gate ? table_find(&gate->subqueues, need->key) : NULL;
    return pool && pool->user_count >= queues->lanes_max;
}

/* Pins the keys of crowded pools, unless that adds a group too many. Returns true if any was
 * pinned. */
static bool pin_crowded(struct queues *queues, struct slot_needs *needs)
{
    struct slot_needs pinned = *needs;
    struct buf text = { 0 };
    bool any = false;
    for (uint32_t i = 0; i < needs->count; i++)
        if (!needs->all[i].is_pinned && names_crowded_pool(queues, &needs->all[i]))
            pinned.all[i].is_pinned = any = true;
    write_group(&pinned, &text);
    any = any &&
          (queues->crowded < CROWDED_MAX || table_find(&queues->groups, buf_slice(&text)));
    if (any)
        *needs = pinned;
    buf_finish(&text);
    return any;
}

static void note_crowded(struct queues *queues, struct slot_group *group)
{
    queues->crowded += !group->is_crowded;
    group->is_crowded = true;
}

/* is_wide: after a mark, the text is that of a demand with many lanes. */
static struct slot_demand *new_demand(struct queues *queues, struct slice text,
                                      bool is_wide)
{
    struct slot_demand *demand = mem_new_flex(struct slot_demand, text.len);
    struct slot_needs needs;
    demand->is_wide = is_wide;
    queues->wide += is_wide;
    demand->text_len = text.len;
    memcpy(demand->text, text.ptr, text.len);
    slot_needs_read(&needs, slice_from(text, is_wide));
    for (uint32_t i = 0; i < needs.count; i++)
        needs.all[i].is_pinned |= is_wide && needs.all[i].key.ptr;
    bool is_crowded = pin_crowded(queues, &needs);
    demand->set = set_of(queues, &needs);
    if (is_crowded)
        note_crowded(queues, demand->set->group);
    for (uint32_t i = 0; i < needs.count; i++)
        if (needs.all[i].key.ptr)
            add_gate(queues, demand, &needs.all[i]);
    demand->keys = needs.texts;
    table_insert(&queues->demands, demand);
    return demand;
}

/* Returns the demand for further items of one that has many lanes. It needs the same pools,
 * but its keys are pinned. */
static struct slot_demand *wide_of(struct queues *queues, struct slot_demand *demand)
{
    struct buf text = { 0 };
    buf_add_char(&text, '*');
    buf_add(&text, slot_demand_key(demand));
    struct slot_demand *wide = table_find(&queues->demands, buf_slice(&text));
    if (!wide && queues->wide < WIDE_MAX)
        wide = new_demand(queues, buf_slice(&text), true);
    buf_finish(&text);
    return wide ? wide : demand;
}

bool slot_demand_is_stated(struct slice text)
{
    return text.len && memchr(text.ptr, '"', text.len);
}

struct slot_demand *slot_demand_named(struct queues *queues, struct slice text)
{
    if (!slot_demand_is_stated(text))
        return NULL;
    struct slot_demand *demand = table_find(&queues->demands, text);
    if (!demand)
        demand = new_demand(queues, text, false);
    else if (demand->lanes >= queues->lanes_max)
        demand = wide_of(queues, demand);
    demand->refs++;
    return demand;
}

void slot_demand_unref(struct queues *queues, struct slot_demand *demand)
{
    if (!demand || --demand->refs)
        return;
    table_remove(&queues->demands, slot_demand_key(demand));
    queues->wide -= demand->is_wide;
    slot_set_unref(queues, demand->set);
    buf_finish(&demand->keys);
    free(demand);
}

static void add_pool(struct subqueue **pools, uint32_t *count, const struct subqueue *own,
                     struct subqueue *pool)
{
    for (uint32_t i = 0; i < *count; i++)
        if (pools[i] == pool)
            return;
    if (pool != own)
        pools[(*count)++] = pool;
}

uint32_t slot_demand_pools(const struct slot_demand *demand, const struct subqueue *own,
                           struct subqueue *pools[SLOT_SET_MAX])
{
    const struct slot_set *set = slot_demand_set(demand);
    uint32_t count = 0;
    for (uint32_t i = 0; set && i < set->keyed_count; i++)
        add_pool(pools, &count, own, queue_subqueue(set->keyed[i], subqueue_key(own)));
    for (uint32_t i = 0; demand && i < demand->count; i++)
        add_pool(pools, &count, own,
                 queue_subqueue(demand->gates[i].queue, demand->gates[i].key));
    return count;
}

/* ---- offers, classes and shares ---- */

static struct offer *offer_for(struct queues *queues, struct queue *queue,
                               uint32_t audience)
{
    list_each (link, &queue->offers) {
        struct offer *offer = container_of(link, struct offer, link);
        if (offer->audience == audience)
            return offer;
    }
    for (; queues->audiences <= audience; queues->audiences++) {
        size_t count = queues->audiences + 1;
        queues->ready = mem_resize(queues->ready, count * sizeof(queues->ready[0]));
        queues->waiting_for = mem_resize(queues->waiting_for, count * sizeof(uint32_t));
        queues->ready[queues->audiences] = (struct queue_turns){ 0 };
        queues->waiting_for[queues->audiences] = 0;
    }
    struct offer *offer = mem_new(struct offer);
    offer->queue = queue;
    offer->audience = audience;
    list_init(&offer->classes);
    list_append(&queue->offers, &offer->link);
    return offer;
}

/* set: whose group it is; NULL: the group of items that need none. */
static struct group_offer *group_offer_for(struct queues *queues,
                                           const struct slot_set *set, uint32_t audience)
{
    struct slice group = set ? slot_group_key(set->group) : SLICE("");
    struct slot_group *found = group_named(queues, group, NULL);
    list_each (link, &found->offers) {
        struct group_offer *offer = container_of(link, struct group_offer, link);
        if (offer->audience != audience)
            continue;
        group_unref(queues, found);
        return offer;
    }
    struct group_offer *offer = mem_new(struct group_offer);
    offer->group = found;
    offer->audience = audience;
    list_append(&found->offers, &offer->link);
    return offer;
}

/* Requires that the offer is in no heap. */
static void free_group_offer_if_empty(struct queues *queues, struct group_offer *offer)
{
    if (offer->classes)
        return;
    list_remove(&offer->link);
    group_unref(queues, offer->group);
    free(offer->ready.nodes);
    free(offer);
}

static struct slot_class *class_for(struct queues *queues, struct offer *offer,
                                    struct slot_set *set)
{
    list_each (link, &offer->classes) {
        struct slot_class *class = container_of(link, struct slot_class, link);
        if (class->set == set)
            return class;
    }
    struct slot_class *class =
        mem_new_flex(struct slot_class, slot_set_own(set) * sizeof(class->needs[0]));
    class->offer = offer;
    class->among = group_offer_for(queues, set, offer->audience);
    class->among->classes++;
    class->set = set;
    if (set)
        set->refs++;
    list_append(&offer->classes, &class->link);
    for (uint32_t i = 0; i < slot_set_own(set); i++) {
        class->needs[i].class = class;
        class->needs[i].limit = set->limits[i];
        list_append(&set->limits[i]->classes, &class->needs[i].link);
    }
    return class;
}

/* Requires that the class is in no heap. */
static void free_class_if_empty(struct queues *queues, struct slot_class *class)
{
    struct slot_set *set = class->set;
    if (class->shares)
        return;
    for (uint32_t i = 0; i < slot_set_own(set); i++)
        list_remove(&class->needs[i].link);
    list_remove(&class->link);
    class->among->classes--;
    free_group_offer_if_empty(queues, class->among);
    free(class->ready.nodes);
    free(class);
    slot_set_unref(queues, set);
}

/* ---- shares and lanes ---- */

static struct slice lane_key(const void *value)
{
    return slot_demand_key(((const struct subqueue_share *)value)->demand);
}

static struct subqueue_share *new_share(struct subqueue *subqueue, struct slot_class *class,
                                        struct slot_demand *demand, uint32_t most)
{
    struct subqueue_share *share =
        mem_new_flex(struct subqueue_share, most * sizeof(share->needs[0]));
    share->class = class;
    share->subqueue = subqueue;
    share->demand = demand;
    return share;
}

static void need_pool(struct subqueue_share *share, struct subqueue *pool)
{
    struct share_need *need = &share->needs[share->count++];
    need->share = share;
    need->pool = pool;
    list_append(&pool->users, &need->link);
    pool->user_count++;
}

/* demand: of the items; NULL: none, or they are in lanes. */
static struct subqueue_share *share_for(struct queues *queues, struct subqueue *subqueue,
                                        uint32_t audience, struct slot_set *set,
                                        struct slot_demand *demand)
{
    list_each (link, &subqueue->shares) {
        struct subqueue_share *share = container_of(link, struct subqueue_share, link);
        if (share->class->offer->audience == audience && share->class->set == set &&
            share->demand == demand)
            return share;
    }
    uint32_t count = set ? set->keyed_count : 0;
    struct slot_class *class =
        class_for(queues, offer_for(queues, subqueue->queue, audience), set);
    struct subqueue_share *share = new_share(subqueue, class, demand, count);
    class->shares++;
    list_append(&subqueue->shares, &share->link);
    for (uint32_t i = 0; i < count; i++)
        need_pool(share, queue_subqueue(set->keyed[i], subqueue_key(subqueue)));
    return share;
}

static struct subqueue_share *lane_for(struct subqueue_share *share,
                                       struct slot_demand *demand)
{
    if (!share->lanes) {
        share->lanes = mem_new(struct table);
        table_init(share->lanes, lane_key);
    }
    struct subqueue_share *lane = table_find(share->lanes, slot_demand_key(demand));
    if (lane)
        return lane;
    lane = new_share(share->subqueue, share->class, demand, demand->lane_count);
    lane->within = share;
    for (uint32_t i = 0; i < demand->count; i++)
        if (!demand->gates[i].is_pinned)
            need_pool(lane, queue_subqueue(demand->gates[i].queue, demand->gates[i].key));
    table_insert(share->lanes, lane);
    demand->lanes++;
    return lane;
}

struct subqueue_share *subqueue_share_for(struct queues *queues, struct subqueue *subqueue,
                                          uint32_t audience, struct slot_demand *demand)
{
    struct slot_set *set = slot_demand_set(demand);
    if (!demand || !demand->lane_count)
        return share_for(queues, subqueue, audience, set, demand);
    return lane_for(share_for(queues, subqueue, audience, set, NULL), demand);
}

static void free_share(struct queues *queues, struct subqueue_share *share)
{
    for (uint32_t i = 0; i < share->count; i++) {
        list_remove(&share->needs[i].link);
        share->needs[i].pool->user_count--;
        subqueue_free_if_empty(queues, share->needs[i].pool);
    }
    if (share->lanes)
        table_finish(share->lanes);
    free(share->lanes);
    free(share->items.nodes);
    free(share);
}

/* Requires that the share is in no heap. */
void subqueue_share_free_if_empty(struct queues *queues, struct subqueue_share *share)
{
    struct slot_class *class = share->class;
    struct subqueue_share *within = share->within;
    if (share->items.count || (share->lanes && share->lanes->count))
        return;
    if (within) {
        table_remove(within->lanes, lane_key(share));
        share->demand->lanes--;
        free_share(queues, share);
        subqueue_share_free_if_empty(queues, within);
        return;
    }
    list_remove(&share->link);
    free_share(queues, share);
    class->shares--;
    free_class_if_empty(queues, class);
}
