/* quota.h - memory quotas, nested: how much memory several users may take together.
 *
 *   request ─► quota of its environment ─► outer: quota of its project     what is taken
 *                                                                          counts in each
 *
 * The preview branches of a project share a quota, which sits between their own quotas and
 * the project's: to the project, they are one environment.
 *
 * A quota only counts. Before taking, check quota_has wherever the request can still be
 * refused. Give back exactly what was taken, to the quota it was taken from. */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>

enum {
    BODY_QUOTA = 128 << 20,   /* bytes of request bodies in progress, per credential */
    ANSWER_QUOTA = 128 << 20, /* bytes of unsent responses, per project or person */

    /* Up to this limit, unsent bytes of a long-lived connection (socket, stream) do not
     * count. Many such connections are idle at any time, and most of these bytes are
     * shared. */
    LITTLE_UNSENT = 128 << 10,

    /* The preview branches of a project together may take 1/2 of the project's limit. */
    BRANCHES_PART = 2,
};

struct quota {
    size_t used, limit;  /* bytes */
    struct quota *outer; /* outlives this one; NULL: none */
};

/* A quota whose largest taker gives something back when the limit is exceeded. */
struct trimmed_quota {
    struct quota quota;
    void *largest; /* the largest taker, set by the owner; NULL: not searched yet */
};

/* Returns the innermost quota that has less than len left; NULL if len fits into all. */
static inline const struct quota *quota_full(const struct quota *quota, size_t len)
{
    for (; quota; quota = quota->outer)
        if (quota->used >= quota->limit || len > quota->limit - quota->used)
            return quota;
    return NULL;
}

static inline bool quota_has(const struct quota *quota, size_t len)
{
    return !quota_full(quota, len);
}

static inline void quota_take(struct quota *quota, size_t len)
{
    for (; quota; quota = quota->outer)
        quota->used += len;
}

static inline void quota_release(struct quota *quota, size_t len)
{
    for (; quota; quota = quota->outer) {
        assert(quota->used >= len);
        quota->used -= len;
    }
}

static inline bool quota_is_inside(const struct quota *quota, const struct quota *outer)
{
    while (quota && quota != outer)
        quota = quota->outer;
    return quota;
}

/* Returns the quota directly inside outer that contains (or is) the given one. */
static inline const struct quota *quota_below(const struct quota *quota,
                                              const struct quota *outer)
{
    while (quota->outer != outer)
        quota = quota->outer;
    return quota;
}

/* Returns true if a quota must give something back before another one when their common
 * outer quota is full. The largest quota directly inside the outer one gives first, and
 * within it again the largest. A quota thus never has to give because another one holds
 * many small quotas. */
static inline bool quota_gives_before(const struct quota *quota, const struct quota *other,
                                      const struct quota *outer)
{
    while (quota != other) {
        const struct quota *one = quota_below(quota, outer),
                           *two = quota_below(other, outer);
        if (one != two)
            return one->used > two->used;
        outer = one;
    }
    return false;
}

/* Returns how much is used above the limit; 0 if the quota is NULL. */
static inline size_t trimmed_quota_excess(const struct trimmed_quota *trimmed)
{
    const struct quota *quota = trimmed ? &trimmed->quota : NULL;
    return quota && quota->used > quota->limit ? quota->used - quota->limit : 0;
}
