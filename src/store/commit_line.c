/* commit_line.c - who is written together, and who has to wait.
 *
 *   small  A: c c c c c    as many as a group holds, and of each owner its share
 *          B: c
 *   large  A: C C          one by itself; then it is the small ones' turn again
 *          B: C
 *
 * Whoever is in a group waits for all of it, and nothing else is written meanwhile. So a
 * small commit waits at most for the group that is being written, for one large commit and
 * for its own group, however much other owners have in line, and however many they are, as long
 * as one commit of each fits in a group. Of the large ones owners take turns, too. An owner is a
 * project: in its turn its environments take turns, so a project that makes more of them (preview
 * branches) gets no more for it.
 *
 * Commits change their order here, those of one environment too where one is large: nobody
 * begins a commit that needs another before that one is done. */
#include "store/commit_line.h"

#include <assert.h>

enum {
    LARGE = 64,          /* from this weight on a commit is written by itself */
    GROUP_WEIGHT = 1024, /* a group closes behind the commit that reaches it */
    SHARE_WEIGHT = 256,  /* of one owner at most; less when many wait */
    CHANGE_BYTES = 8192, /* that cost as much as one more change */
};

/* The commits of one environment; there while it has any. */
struct env_commits {
    uint32_t env;
    struct commit_owner *owner;
    struct list commits; // store_commit::link; in the order in which they came
    struct list link;    // commit_owner::environments
};

/* There while one of its environments has commits. */
struct commit_owner {
    uint64_t number;
    struct list environments; // env_commits::link; the next one first
    struct list link;         // commit_turns::waiting, served
};

/* ---- turns ---- */

static struct slice key_of(const uint64_t *number)
{
    return (struct slice){ (const char *)number, sizeof(*number) };
}

static struct slice owner_key(const void *value)
{
    return key_of(&((const struct commit_owner *)value)->number);
}

static struct commit_owner *owner_of(struct commit_turns *turns, uint64_t number)
{
    struct commit_owner *owner = table_find(&turns->owners, key_of(&number));
    if (owner)
        return owner;
    owner = mem_new(struct commit_owner);
    owner->number = number;
    list_init(&owner->environments);
    list_append(&turns->waiting, &owner->link);
    table_insert(&turns->owners, owner);
    return owner;
}

static struct env_commits *begin_queue(struct commit_turns *turns, uint64_t owner,
                                       uint32_t env)
{
    struct env_commits *queue = mem_new(struct env_commits);
    queue->env = env;
    queue->owner = owner_of(turns, owner);
    list_init(&queue->commits);
    list_append(&queue->owner->environments, &queue->link);
    return queue;
}

static void add(struct commit_turns *turns, uint64_t owner, uint32_t env,
                struct store_commit *req)
{
    void **place = slots_at(&turns->queues, env);
    if (!*place)
        *place = begin_queue(turns, owner, env);
    list_append(&((struct env_commits *)*place)->commits, &req->link);
}

/* Takes a commit of the environment whose turn it is. */
static struct list *take_one(struct commit_turns *turns, struct commit_owner *owner)
{
    struct env_commits *queue =
        container_of(list_take(&owner->environments), struct env_commits, link);
    struct list *first = list_take(&queue->commits);
    if (!list_empty(&queue->commits)) {
        list_append(&owner->environments, &queue->link);
    } else {
        *slots_at(&turns->queues, queue->env) = NULL;
        free(queue);
    }
    return first;
}

static void end_turn(struct commit_turns *turns, struct commit_owner *owner)
{
    if (!list_empty(&owner->environments)) {
        list_append(&turns->served, &owner->link);
        return;
    }
    table_remove(&turns->owners, key_of(&owner->number));
    free(owner);
}

/* Moves commits of the owner whose turn it is until their weight reaches the share; returns
 * their weight. */
static size_t take_turn(struct commit_turns *turns, size_t share, struct list *group)
{
    struct commit_owner *owner =
        container_of(list_take(&turns->waiting), struct commit_owner, link);
    size_t weight = 0;
    while (weight < share && !list_empty(&owner->environments)) {
        struct list *link = take_one(turns, owner);
        weight += container_of(link, struct store_commit, link)->weight;
        list_append(group, link);
    }
    end_turn(turns, owner);
    return weight;
}

/* Owners that had a turn in the last group stand behind those that have
 * come since. */
static void begin_group(struct commit_turns *turns)
{
    list_move_all(&turns->waiting, &turns->served);
}

static void finish(struct commit_turns *turns)
{
    assert(!turns->owners.count);
    table_finish(&turns->owners);
    slots_finish(&turns->queues);
}

static void empty_into(struct commit_turns *turns, struct list *to)
{
    begin_group(turns);
    while (turns->owners.count)
        take_turn(turns, SIZE_MAX, to);
}

static void init(struct commit_turns *turns)
{
    table_init(&turns->owners, owner_key);
    list_init(&turns->waiting);
    list_init(&turns->served);
}

/* ---- the line ---- */

void commit_line_init(struct commit_line *line)
{
    *line = (struct commit_line){ 0 };
    init(&line->small);
    init(&line->large);
}

void commit_line_finish(struct commit_line *line)
{
    finish(&line->small);
    finish(&line->large);
}

bool commit_line_empty(const struct commit_line *line)
{
    return !line->small.owners.count && !line->large.owners.count;
}

static size_t written_bytes(const struct change *change)
{
    const struct run *run = &change->run;
    size_t bytes = 0;
    if (change->kind == CHANGE_DOCUMENT)
        return bytes_slice(change->document.body).len;
    if (change->marks & MARK_PAYLOAD)
        bytes += bytes_slice(run->payload).len;
    if (change->marks & MARK_METADATA)
        bytes += bytes_slice(run->metadata).len;
    if (change->marks & MARK_OUTPUT)
        bytes += bytes_slice(run->output).len + bytes_slice(run->error).len;
    return bytes;
}

/* The weight of a commit, in changes: how long the transaction lasts because of it. */
static size_t weigh(const struct store_commit *req)
{
    size_t bytes = 0;
    for (size_t i = 0; i < req->change_count; i++)
        bytes += written_bytes(&req->changes[i]);
    return 1 + req->change_count + req->claim_count + bytes / CHANGE_BYTES;
}

static uint32_t env_of(const struct store_commit *req)
{
    if (req->change_count)
        return req->changes[0].env;
    return req->claim_count ? req->claims[0].env : ENV_INSTALLATION;
}

void commit_line_add(struct commit_line *line, const struct store *store,
                     struct store_commit *req)
{
    uint32_t env = env_of(req);
    uint64_t owner = store->share_of ? store->share_of(store->stored_owner, env) : env;
    req->weight = weigh(req);
    add(req->weight >= LARGE ? &line->large : &line->small, owner, env, req);
}

static size_t share_of_each(size_t owners)
{
    size_t share = GROUP_WEIGHT / owners;
    return share > SHARE_WEIGHT ? SHARE_WEIGHT : share + !share;
}

/* Takes small commits: each owner has one turn. */
static void take_small(struct commit_turns *small, struct list *group)
{
    size_t share = share_of_each(small->owners.count), weight = 0;
    begin_group(small);
    while (!list_empty(&small->waiting) && weight < GROUP_WEIGHT)
        weight += take_turn(small, share, group);
}

static void take_large(struct commit_turns *large, struct list *group)
{
    begin_group(large);
    take_turn(large, 1, group); /* whatever the first one weighs */
}

void commit_line_take(struct commit_line *line, struct list *group)
{
    bool small = line->small.owners.count, large = line->large.owners.count;
    line->large_was_last = large && (!small || !line->large_was_last);
    if (line->large_was_last)
        take_large(&line->large, group);
    else if (small)
        take_small(&line->small, group);
}

void commit_line_empty_into(struct commit_line *line, struct list *to)
{
    empty_into(&line->small, to);
    empty_into(&line->large, to);
}
