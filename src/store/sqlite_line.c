/* sqlite_line.c - who is written together, and who has to wait.
 *
 *   small  c c c c c     as many as a group holds, and of one environment at most its share
 *   large  C C           one by itself; then it is the small ones' turn again
 *
 * Whoever is in a group waits for all of it, and nothing else is written meanwhile. So a
 * small commit waits at most for the group that is being written, for one large commit and
 * for its own group, however much another environment has in line. Of the large ones those
 * of another environment than the last come first.
 *
 * Commits change their order here, even those of one environment: nobody begins a commit
 * that needs another before that one is done. */
#include "store/sqlite_line.h"

enum {
    LARGE = 64,          /* from this weight on a commit is written by itself */
    GROUP_WEIGHT = 1024, /* a group closes behind the commit that reaches it */
    SHARE_WEIGHT = 256,  /* the same, of one environment */
    SHARES = 16,         /* environments in a group */
    CHANGE_BYTES = 8192, /* that cost as much as one more change */
};

struct share {
    uint32_t env;
    size_t weight;
};

void sqlite_line_init(struct sqlite_line *line)
{
    *line = (struct sqlite_line){ 0 };
    list_init(&line->small);
    list_init(&line->large);
}

bool sqlite_line_empty(const struct sqlite_line *line)
{
    return list_empty(&line->small) && list_empty(&line->large);
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

/* In changes: how long the transaction lasts because of it. */
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

void sqlite_line_add(struct sqlite_line *line, struct store_commit *req)
{
    req->weight = weigh(req);
    list_append(req->weight >= LARGE ? &line->large : &line->small, &req->link);
}

static struct store_commit *commit_of(struct list *link)
{
    return container_of(link, struct store_commit, link);
}

/* NULL: the group has as many environments as it may. */
static struct share *share_of(struct share shares[SHARES], uint32_t env)
{
    for (size_t i = 0; i < SHARES; i++) {
        if (!shares[i].weight)
            shares[i].env = env;
        if (shares[i].env == env)
            return &shares[i];
    }
    return NULL;
}

static void take_small(struct sqlite_line *line, struct list *group)
{
    struct share shares[SHARES] = { 0 };
    size_t weight = 0;
    list_each (link, &line->small) {
        struct store_commit *req = commit_of(link);
        if (weight >= GROUP_WEIGHT)
            return;
        struct share *share = share_of(shares, env_of(req));
        if (!share || share->weight >= SHARE_WEIGHT)
            continue;
        share->weight += req->weight;
        weight += req->weight;
        list_remove(link);
        list_append(group, link);
    }
}

static void take_large(struct sqlite_line *line, struct list *group)
{
    struct list *next = line->large.next;
    list_each (link, &line->large) {
        if (env_of(commit_of(link)) != line->large_env) {
            next = link;
            break;
        }
    }
    line->large_env = env_of(commit_of(next));
    list_remove(next);
    list_append(group, next);
}

void sqlite_line_take(struct sqlite_line *line, struct list *group)
{
    bool small = !list_empty(&line->small), large = !list_empty(&line->large);
    line->large_was_last = large && (!small || !line->large_was_last);
    if (line->large_was_last)
        take_large(line, group);
    else
        take_small(line, group);
}

void sqlite_line_empty_into(struct sqlite_line *line, struct list *to)
{
    list_move_all(to, &line->small);
    list_move_all(to, &line->large);
}
