/* sqlite_waiting.c - queues of reads in queues of environments in a queue of owners. */
#include "store/sqlite/sqlite_waiting.h"

#include <assert.h>

#include "base/mem.h"

/* An owner, which has environments, or an environment, which has reads; there while it has
 * any. */
struct sqlite_party {
    uint64_t number;
    struct sqlite_parties environments;
    struct list waiters; // sqlite_waiter::link; in the order in which they came
    struct list link;    // sqlite_parties::waiting
};

static struct slice slice_of_number(const uint64_t *number)
{
    return (struct slice){ (const char *)number, sizeof(*number) };
}

static struct slice party_key(const void *value)
{
    return slice_of_number(&((const struct sqlite_party *)value)->number);
}

static void init(struct sqlite_parties *parties)
{
    table_init(&parties->by_number, party_key);
    list_init(&parties->waiting);
}

static void finish(struct sqlite_parties *parties)
{
    assert(list_empty(&parties->waiting));
    table_finish(&parties->by_number);
}

void sqlite_waiting_init(struct sqlite_waiting *waiting)
{
    *waiting = (struct sqlite_waiting){ 0 };
    init(&waiting->quick);
    init(&waiting->slow);
}

void sqlite_waiting_finish(struct sqlite_waiting *waiting)
{
    finish(&waiting->quick);
    finish(&waiting->slow);
}

static struct sqlite_party *party_of(struct sqlite_parties *parties, uint64_t number)
{
    struct sqlite_party *party = table_find(&parties->by_number, slice_of_number(&number));
    if (party)
        return party;
    party = mem_new(struct sqlite_party);
    party->number = number;
    init(&party->environments);
    list_init(&party->waiters);
    list_append(&parties->waiting, &party->link);
    table_insert(&parties->by_number, party);
    return party;
}

void sqlite_waiting_add(struct sqlite_waiting *waiting, struct sqlite_waiter *waiter)
{
    struct sqlite_parties *owners = waiter->slow ? &waiting->slow : &waiting->quick;
    struct sqlite_party *owner = party_of(owners, waiter->owner);
    list_append(&party_of(&owner->environments, waiter->env)->waiters, &waiter->link);
}

static struct sqlite_party *next_party(struct sqlite_parties *parties)
{
    return container_of(list_take(&parties->waiting), struct sqlite_party, link);
}

/* Who has more goes behind the others. */
static void end_turn(struct sqlite_parties *parties, struct sqlite_party *party, bool more)
{
    if (more) {
        list_append(&parties->waiting, &party->link);
        return;
    }
    table_remove(&parties->by_number, slice_of_number(&party->number));
    finish(&party->environments);
    free(party);
}

static struct sqlite_waiter *take(struct sqlite_parties *owners)
{
    struct sqlite_party *owner = next_party(owners);
    struct sqlite_party *env = next_party(&owner->environments);
    struct list *first = list_take(&env->waiters);
    end_turn(&owner->environments, env, !list_empty(&env->waiters));
    end_turn(owners, owner, !list_empty(&owner->environments.waiting));
    return container_of(first, struct sqlite_waiter, link);
}

struct sqlite_waiter *sqlite_waiting_take(struct sqlite_waiting *waiting, bool slow_may)
{
    bool quick = !list_empty(&waiting->quick.waiting);
    bool slow = slow_may && !list_empty(&waiting->slow.waiting) &&
                (!quick || !waiting->slow_was_last);
    if (!quick && !slow)
        return NULL;
    waiting->slow_was_last = slow;
    return take(slow ? &waiting->slow : &waiting->quick);
}
