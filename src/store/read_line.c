/* read_line.c - queues of reads per environment, in queues of environments per owner. */
#include "store/read_line.h"

#include <assert.h>

#include "base/mem.h"

/* An owner, which has environments, or an environment, which has reads. Exists only while
 * it has any. */
struct read_party {
    uint64_t number;
    struct read_parties environments;
    struct list waiters; // read_waiter::link; in the order in which they came
    struct list link;    // read_parties::waiting
};

/* ---- kinds of reads ---- */

/* Returns true if an index finds only a few runs, or finds the page first.
 *
 * A run may have very many children; a filter for all of them is narrow because the first
 * ones are the page. Lists that are not narrow count as slow. */
static bool is_narrow(const struct run_filter *f)
{
    bool every_child = !f->statuses && !f->machines && f->is_test < 0 && !f->created_from &&
                       !f->created_to && !f->task_count && !f->version_count &&
                       !f->tag_count && !f->queue_count && !f->region_count &&
                       !f->batch.ptr && !f->schedule.ptr && !f->bulk.ptr;
    return f->packet.ptr || (f->parent.len && every_child);
}

/* A count reads every run that it counts. */
static bool is_slow(const struct store_read *read)
{
    if (read->kind == READ_LIST)
        return !is_narrow(&container_of(read, struct store_list, read)->filter);
    return read->kind == READ_COUNT || read->kind == READ_WALK;
}

static bool is_bounded(const struct store_read *read)
{
    if (read->kind == READ_WALK)
        return !container_of(read, struct store_walk, read)->takes_its_time;
    return read->kind != READ_SCAN || container_of(read, struct store_scan, read)->limit;
}

static bool is_for_memory(const struct store_read *read)
{
    if (read->kind == READ_LOAD)
        return container_of(read, struct store_load, read)->is_for_memory;
    return read->kind == READ_WALK &&
           container_of(read, struct store_walk, read)->is_for_memory;
}

void read_waiter_init(struct read_waiter *waiter, const struct store *store,
                      const struct store_read *read)
{
    bool for_memory = is_for_memory(read);
    *waiter = (struct read_waiter){
        .owner =
            store->share_of ? store->share_of(store->stored_owner, read->env) : read->env,
        .env = read->env,
        .for_memory = for_memory,
        .slow = !for_memory && is_slow(read),
        .bounded = is_bounded(read),
    };
    if (for_memory)
        waiter->owner = waiter->env = 0;
    list_init(&waiter->link);
}

/* ---- turns ---- */

static struct slice slice_of_number(const uint64_t *number)
{
    return (struct slice){ (const char *)number, sizeof(*number) };
}

static struct slice party_key(const void *value)
{
    return slice_of_number(&((const struct read_party *)value)->number);
}

static void init(struct read_parties *parties)
{
    table_init(&parties->by_number, party_key);
    list_init(&parties->waiting);
}

static void read_parties_finish(struct read_parties *parties)
{
    assert(list_empty(&parties->waiting));
    table_finish(&parties->by_number);
}

void read_line_init(struct read_line *waiting)
{
    *waiting = (struct read_line){ 0 };
    init(&waiting->memory);
    init(&waiting->quick);
    init(&waiting->slow);
}

void read_line_finish(struct read_line *waiting)
{
    read_parties_finish(&waiting->memory);
    read_parties_finish(&waiting->quick);
    read_parties_finish(&waiting->slow);
}

bool read_line_is_empty(const struct read_line *waiting)
{
    return list_empty(&waiting->memory.waiting) && list_empty(&waiting->quick.waiting) &&
           list_empty(&waiting->slow.waiting);
}

static struct read_party *party_of(struct read_parties *parties, uint64_t number)
{
    struct read_party *party = table_find(&parties->by_number, slice_of_number(&number));
    if (party)
        return party;
    party = mem_new(struct read_party);
    party->number = number;
    init(&party->environments);
    list_init(&party->waiters);
    list_append(&parties->waiting, &party->link);
    table_insert(&parties->by_number, party);
    return party;
}

void read_line_add(struct read_line *waiting, struct read_waiter *waiter)
{
    struct read_parties *owners = waiter->for_memory ? &waiting->memory
                                  : waiter->slow     ? &waiting->slow
                                                     : &waiting->quick;
    struct read_party *owner = party_of(owners, waiter->owner);
    list_append(&party_of(&owner->environments, waiter->env)->waiters, &waiter->link);
}

static struct read_party *next_party(struct read_parties *parties)
{
    return container_of(list_take(&parties->waiting), struct read_party, link);
}

/* A party with more reads goes to the back of the queue. */
static void end_turn(struct read_parties *parties, struct read_party *party, bool more)
{
    if (more) {
        list_append(&parties->waiting, &party->link);
        return;
    }
    table_remove(&parties->by_number, slice_of_number(&party->number));
    read_parties_finish(&party->environments);
    free(party);
}

static struct read_waiter *take(struct read_parties *owners)
{
    struct read_party *owner = next_party(owners);
    struct read_party *env = next_party(&owner->environments);
    struct list *first = list_take(&env->waiters);
    end_turn(&owner->environments, env, !list_empty(&env->waiters));
    end_turn(owners, owner, !list_empty(&owner->environments.waiting));
    return container_of(first, struct read_waiter, link);
}

/* Returns NULL if no read of a project may begin. */
static struct read_parties *choose(struct read_line *waiting, bool slow_may)
{
    bool quick = !list_empty(&waiting->quick.waiting);
    bool slow = slow_may && !list_empty(&waiting->slow.waiting) &&
                (!quick || !waiting->slow_was_last);
    if (!quick && !slow)
        return NULL;
    waiting->slow_was_last = slow;
    return slow ? &waiting->slow : &waiting->quick;
}

struct read_waiter *read_line_take(struct read_line *waiting, bool slow_may)
{
    bool memory = !list_empty(&waiting->memory.waiting);
    struct read_parties *next = NULL;
    if (!memory || waiting->memory_was_last)
        next = choose(waiting, slow_may);
    if (!next && memory)
        next = &waiting->memory;
    waiting->memory_was_last = next == &waiting->memory;
    return next ? take(next) : NULL;
}

bool read_line_slow_may(size_t searching, size_t connections)
{
    return searching + 1 < connections || (!searching && connections == 1);
}
