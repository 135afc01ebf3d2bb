/* rate.h - the arithmetic of a token bucket: how many runs may start per period.
 *
 * A bucket has `starts` tokens when it is full, a start takes one, and one comes back after
 * each interval, which is period / starts. So at most 2 * starts - 1 begin within one
 * period, and (k + 1) * starts - 1 within k periods.
 *
 * The state of a bucket is one time: when it will be full again if nothing takes a token.
 * Times are monotonic, in ns; an interval is rounded up. */
#pragma once

#include <stdint.h>

enum {
    RATE_STARTS_MAX = 100000,
    RATE_PERIOD_MIN_MS = 1000,
    RATE_PERIOD_MAX_MS = 24 * 3600 * 1000,
    RATE_NS_PER_MS = 1000 * 1000,
};

struct rate {
    uint32_t starts; /* 0: no rate */
    uint32_t period_ms;
};

/* These require a rate. */

/* Returns how long it takes until one more token is there. */
static inline int64_t rate_interval(struct rate rate)
{
    return ((int64_t)rate.period_ms * RATE_NS_PER_MS + rate.starts - 1) / rate.starts;
}

/* Returns how long an empty bucket takes to become full. */
static inline int64_t rate_capacity(struct rate rate)
{
    return rate_interval(rate) * rate.starts;
}

/* Returns when a bucket that will be full at full_at has a token. */
static inline int64_t rate_opens_at(struct rate rate, int64_t full_at)
{
    return full_at - (rate_capacity(rate) - rate_interval(rate));
}

/* Returns how many tokens the bucket has now. */
static inline uint32_t rate_available(struct rate rate, int64_t full_at, int64_t now)
{
    int64_t missing = full_at > now ? full_at - now : 0, capacity = rate_capacity(rate);
    return missing < capacity ? (uint32_t)((capacity - missing) / rate_interval(rate)) : 0;
}

/* Returns full_at without one more token. */
static inline int64_t rate_take(struct rate rate, int64_t full_at, int64_t now)
{
    return (full_at > now ? full_at : now) + rate_interval(rate);
}
