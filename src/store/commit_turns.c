/* commit_turns.c - a queue of projects, each a queue of environments with their commits. */
#include "store/commit_turns.h"

#include <assert.h>

/* The commits of one project. Exists only while there are any. */
struct share_commits {
    uint64_t share;
    unsigned round;      /* the last round in which it had a turn */
    struct list waiting; // env_commits::link; the next one first
    struct list served;  // env_commits::link; no turn before the next round
    struct list link;    // commit_turns::waiting, served
};

/* The commits of one environment. Exists only while there are any. */
struct env_commits {
    uint32_t env;
    struct share_commits *share;
    struct list commits; // store_commit::link; in the order in which they came
    struct list link;    // share_commits::waiting, served
};

static struct slice slice_of_share(const uint64_t *share)
{
    return (struct slice){ (const char *)share, sizeof(*share) };
}

static struct slice share_key(const void *value)
{
    return slice_of_share(&((const struct share_commits *)value)->share);
}

void commit_turns_init(struct commit_turns *turns)
{
    *turns = (struct commit_turns){ 0 };
    table_init(&turns->shares, share_key);
    list_init(&turns->waiting);
    list_init(&turns->served);
}

void commit_turns_finish(struct commit_turns *turns)
{
    assert(!turns->shares.count);
    table_finish(&turns->shares);
    slots_finish(&turns->queues);
}

static uint32_t env_of(const struct store_commit *req)
{
    if (req->change_count)
        return req->changes[0].env;
    return req->claim_count ? req->claims[0].env : ENV_INSTALLATION;
}

/* ---- adding ---- */

static struct share_commits *share_of(struct commit_turns *turns, uint64_t number)
{
    struct share_commits *share = table_find(&turns->shares, slice_of_share(&number));
    if (share)
        return share;
    share = mem_new(struct share_commits);
    share->share = number;
    share->round = turns->round;
    list_init(&share->waiting);
    list_init(&share->served);
    list_append(&turns->waiting, &share->link);
    table_insert(&turns->shares, share);
    return share;
}

static struct env_commits *begin_queue(struct commit_turns *turns,
                                       const struct store *store, uint32_t env)
{
    uint64_t share = store->share_of ? store->share_of(store->stored_owner, env) : env;
    struct env_commits *queue = mem_new(struct env_commits);
    queue->env = env;
    queue->share = share_of(turns, share);
    list_init(&queue->commits);
    list_append(&queue->share->waiting, &queue->link);
    return queue;
}

void commit_turns_add(struct commit_turns *turns, const struct store *store,
                      struct store_commit *req)
{
    uint32_t env = env_of(req);
    void **place = slots_at(&turns->queues, env);
    if (!*place)
        *place = begin_queue(turns, store, env);
    list_append(&((struct env_commits *)*place)->commits, &req->link);
}

/* ---- turns ---- */

void commit_turns_begin_round(struct commit_turns *turns)
{
    list_move_all(&turns->waiting, &turns->served);
    turns->round++;
}

/* Returns the project whose turn it is, prepared for this round; NULL if there is none. */
static struct share_commits *front(struct commit_turns *turns)
{
    if (list_empty(&turns->waiting))
        return NULL;
    struct share_commits *share =
        container_of(turns->waiting.next, struct share_commits, link);
    if (share->round != turns->round)
        list_move_all(&share->waiting, &share->served);
    share->round = turns->round;
    return share;
}

static struct env_commits *front_queue(const struct share_commits *share)
{
    return container_of(share->waiting.next, struct env_commits, link);
}

static struct list *take_commit(struct share_commits *share)
{
    return list_take(&front_queue(share)->commits);
}

/* Moves the first environment to the end of a line; frees it if it has no commits. */
static void end_queue(struct commit_turns *turns, struct share_commits *share,
                      struct list *line)
{
    struct env_commits *queue = front_queue(share);
    list_remove(&queue->link);
    if (!list_empty(&queue->commits)) {
        list_append(line, &queue->link);
        return;
    }
    *slots_at(&turns->queues, queue->env) = NULL;
    free(queue);
}

static void end_share(struct commit_turns *turns, struct share_commits *share,
                      struct list *line)
{
    list_remove(&share->link);
    if (!list_empty(&share->waiting) || !list_empty(&share->served)) {
        list_append(list_empty(&share->waiting) ? &turns->served : line, &share->link);
        return;
    }
    table_remove(&turns->shares, slice_of_share(&share->share));
    free(share);
}

struct store_commit *commit_turns_first(struct commit_turns *turns)
{
    const struct share_commits *share = front(turns);
    if (!share)
        return NULL;
    return container_of(front_queue(share)->commits.next, struct store_commit, link);
}

void commit_turns_take(struct commit_turns *turns)
{
    struct share_commits *share = front(turns);
    take_commit(share);
    end_queue(turns, share, &share->waiting);
    end_share(turns, share, &turns->waiting);
}

void commit_turns_pass(struct commit_turns *turns)
{
    struct share_commits *share = front(turns);
    end_queue(turns, share, &share->served);
    end_share(turns, share, &turns->waiting);
}

size_t commit_turns_take_share(struct commit_turns *turns, size_t share, struct list *group)
{
    struct share_commits *party = front(turns);
    size_t weight = 0;
    while (party && weight < share && !list_empty(&party->waiting)) {
        struct list *link = take_commit(party);
        weight += container_of(link, struct store_commit, link)->weight;
        list_append(group, link);
        end_queue(turns, party, &party->waiting);
    }
    if (party)
        end_share(turns, party, &turns->served);
    return weight;
}
