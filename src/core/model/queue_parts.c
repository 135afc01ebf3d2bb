/* queue_parts.c - makes and frees queues, limits, subqueues, sets and shares.
 *
 * A subqueue lives while it has an item, a queue while it has a subqueue or a setting, a
 * limit also while a set names it: names that clients choose do not stay. */
#include "core/model/queue_parts.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json/scan.h"
#include "base/mem.h"

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
    list_init(&subqueue->busy);
    table_insert(&queue->subqueues, subqueue);
    return subqueue;
}

void queue_free(struct queue *queue)
{
    assert(queue->subqueues.count == 0);
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
           (queue->is_limit && settings->version);
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
        subqueue->running > 0 || subqueue->override != UINT32_MAX)
        return;
    table_remove(&queue->subqueues, subqueue_key(subqueue));
    free(subqueue);
    queue_free_if_unused(queues, queue);
}

/* ---- groups of limits ---- */

static void add_need(struct queues *queues, struct slot_group *group, struct slice name)
{
    struct group_need *need = &group->needs[group->count++];
    need->group = group;
    need->limit = queue_named(&queues->limits, name);
    need->limit->uses++;
    list_append(&need->limit->groups, &need->link);
}

/* Returns the group with this text, a JSON array of names without brackets; "": none. Adds
 * a reference. */
static struct slot_group *group_named(struct queues *queues, struct slice text)
{
    struct slot_group *group = table_find(&queues->groups, text);
    struct slice names = text, name;
    if (!group) {
        group = mem_new_flex(struct slot_group, text.len);
        group->text_len = text.len;
        memcpy(group->text, text.ptr, text.len);
        list_init(&group->offers);
        table_insert(&queues->groups, group);
        while (slice_split(&names, ',', &name))
            add_need(queues, group, scan_unquoted(name));
    }
    group->refs++;
    return group;
}

static void group_unref(struct queues *queues, struct slot_group *group)
{
    if (--group->refs)
        return;
    table_remove(&queues->groups, slot_group_key(group));
    for (uint32_t i = 0; i < group->count; i++) {
        list_remove(&group->needs[i].link);
        group->needs[i].limit->uses--;
        queue_free_if_unused(queues, group->needs[i].limit);
    }
    free(group);
}

/* ---- sets of limits ---- */

/* Only the name of a limit of a task alone has a slash. */
static bool is_own_name(struct slice name)
{
    return memchr(name.ptr, '/', name.len);
}

static bool set_has(const struct slot_set *set, const struct queue *limit)
{
    for (uint32_t i = 0; i < set->count; i++)
        if (set->limits[i] == limit)
            return true;
    return false;
}

/* Finds the limits of the set, each once, and its group. */
static void fill_set(struct queues *queues, struct slot_set *set)
{
    struct scan_members elements = scan_members(slot_set_key(set));
    struct slice element;
    struct buf name = { 0 }, group = { 0 };
    while (set->count < SLOT_SET_MAX && scan_next_element(&elements, &element)) {
        buf_clear(&name);
        scan_string(element, &name);
        struct queue *limit = queue_named(&queues->limits, buf_slice(&name));
        if (set_has(set, limit))
            continue;
        limit->uses++;
        set->limits[set->count++] = limit;
        if (!group.len && is_own_name(buf_slice(&name))) {
            set->own++;
            continue;
        }
        if (group.len)
            buf_add_char(&group, ',');
        buf_add_json(&group, buf_slice(&name));
    }
    set->group = group_named(queues, buf_slice(&group));
    buf_finish(&name);
    buf_finish(&group);
}

/* The text is a JSON array of names. */
struct slot_set *slot_set_named(struct queues *queues, struct slice text)
{
    bool is_empty = text.len <= sizeof("[]") - 1;
    struct slot_set *set = is_empty ? NULL : table_find(&queues->sets, text);
    if (set || is_empty)
        return set;
    set = mem_new_flex(struct slot_set, text.len);
    set->text_len = text.len;
    memcpy(set->text, text.ptr, text.len);
    fill_set(queues, set);
    table_insert(&queues->sets, set);
    return set;
}

struct slot_set *slot_set_ref(struct slot_set *set)
{
    if (set)
        set->refs++;
    return set;
}

void slot_set_unref(struct queues *queues, struct slot_set *set)
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

static struct group_offer *group_offer_for(struct queues *queues, struct slice group,
                                           uint32_t audience)
{
    struct slot_group *found = group_named(queues, group);
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
    struct slice group = set ? slot_group_key(set->group) : SLICE("");
    class->offer = offer;
    class->among = group_offer_for(queues, group, offer->audience);
    class->among->classes++;
    class->set = slot_set_ref(set);
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

struct subqueue_share *subqueue_share_for(struct queues *queues, struct subqueue *subqueue,
                                          uint32_t audience, struct slot_set *set)
{
    list_each (link, &subqueue->shares) {
        struct subqueue_share *share = container_of(link, struct subqueue_share, link);
        if (share->class->offer->audience == audience && share->class->set == set)
            return share;
    }
    struct subqueue_share *share =
        mem_new_flex(struct subqueue_share, slot_set_count(set) * sizeof(share->needs[0]));
    share->class = class_for(queues, offer_for(queues, subqueue->queue, audience), set);
    share->class->shares++;
    share->subqueue = subqueue;
    list_append(&subqueue->shares, &share->link);
    for (uint32_t i = 0; i < slot_set_count(set); i++) {
        share->needs[i].share = share;
        share->needs[i].pool = queue_subqueue(set->limits[i], subqueue_key(subqueue));
        list_append(&share->needs[i].pool->users, &share->needs[i].link);
    }
    return share;
}

/* Requires that the share is in no heap. */
void subqueue_share_free_if_empty(struct queues *queues, struct subqueue_share *share)
{
    struct slot_class *class = share->class;
    if (share->items.count)
        return;
    for (uint32_t i = 0; i < slot_set_count(class->set); i++) {
        list_remove(&share->needs[i].link);
        subqueue_free_if_empty(queues, share->needs[i].pool);
    }
    list_remove(&share->link);
    free(share->items.nodes);
    free(share);
    class->shares--;
    free_class_if_empty(queues, class);
}
