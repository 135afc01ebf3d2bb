/* commit_line.c - chooses the commits that are written in one transaction (a group).
 *
 *   small  A: c c c c c    as many as fit in a group; each project gets its share
 *          B: c
 *   large  A: C C          one by itself; then the small ones have their turn
 *          B: C
 *
 * A commit waits for its whole group, and nothing else is written meanwhile. So a small
 * commit waits at most for the group being written, one large commit and its own group, no
 * matter how many commits other projects have in line or how many projects there are, as
 * long as one commit of each fits in a group. Projects also take turns with large commits.
 *
 * This can reorder commits, even those of one environment if one of them is large. That is
 * safe because a commit that depends on another is begun only after that one is done. */
#include "store/commit_line.h"

enum {
    LARGE = 64,          /* a commit of at least this weight is written by itself */
    GROUP_WEIGHT = 1024, /* a group is closed after the commit that reaches it */
    SHARE_WEIGHT = 256,  /* at most per project; less when many projects wait */
    CHANGE_BYTES = 8192, /* count as much as one more change */
};

void commit_line_init(struct commit_line *line)
{
    *line = (struct commit_line){ 0 };
    commit_turns_init(&line->small);
    commit_turns_init(&line->large);
}

void commit_line_finish(struct commit_line *line)
{
    commit_turns_finish(&line->small);
    commit_turns_finish(&line->large);
}

bool commit_line_empty(const struct commit_line *line)
{
    return !commit_turns_count(&line->small) && !commit_turns_count(&line->large);
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

/* Returns the weight of a commit in changes: how much it prolongs the transaction. */
static size_t weigh(const struct store_commit *req)
{
    size_t bytes = 0;
    for (size_t i = 0; i < req->change_count; i++)
        bytes += written_bytes(&req->changes[i]);
    return 1 + req->change_count + req->claim_count + bytes / CHANGE_BYTES;
}

void commit_line_add(struct commit_line *line, const struct store *store,
                     struct store_commit *req)
{
    req->weight = weigh(req);
    commit_turns_add(req->weight >= LARGE ? &line->large : &line->small, store, req);
}

static size_t share_of_each(size_t projects)
{
    size_t share = GROUP_WEIGHT / projects;
    return share > SHARE_WEIGHT ? SHARE_WEIGHT : share + !share;
}

/* Takes small commits; each project has one turn. */
static void take_small(struct commit_turns *small, struct list *group)
{
    size_t share = share_of_each(commit_turns_count(small)), weight = 0, taken = 1;
    commit_turns_begin_round(small);
    for (; taken && weight < GROUP_WEIGHT; weight += taken)
        taken = commit_turns_take_share(small, share, group);
}

static void take_large(struct commit_turns *large, struct list *group)
{
    commit_turns_begin_round(large);
    commit_turns_take_share(large, 1, group); /* the first one, whatever its weight */
}

void commit_line_take(struct commit_line *line, struct list *group)
{
    bool small = commit_turns_count(&line->small), large = commit_turns_count(&line->large);
    line->large_was_last = large && (!small || !line->large_was_last);
    if (line->large_was_last)
        take_large(&line->large, group);
    else if (small)
        take_small(&line->small, group);
}

static void empty_into(struct commit_turns *turns, struct list *to)
{
    commit_turns_begin_round(turns);
    while (commit_turns_count(turns))
        commit_turns_take_share(turns, SIZE_MAX, to);
}

void commit_line_empty_into(struct commit_line *line, struct list *to)
{
    empty_into(&line->small, to);
    empty_into(&line->large, to);
}
