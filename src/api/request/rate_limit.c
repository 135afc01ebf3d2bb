/* rate_limit.c - one timestamp for each key or token (the generic cell rate algorithm).
 *
 * The timestamp is the time at which everything used is available again. A share with
 * everything available is forgotten, and so is the oldest when there are too many. Only a
 * client with a key that signs tokens can fill a table of this size. */
#include "api/request/rate_limit.h"

#include "api/request/route.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "base/table.h"

enum { SHARES_MAX = 50000, FORGET_EACH = 4, MINUTE_US = 60 * 1000 * 1000 };

struct rate_share {
    unsigned char who[HASH_LEN];
    int64_t whole_at; /* when everything is available again; monotonic us */
    struct list link; // rate_limit::oldest_first
};

struct rate_limit {
    struct loop *loop;
    int64_t each_us; /* time that one request uses up */
    int64_t burst;
    struct table shares;
    struct list oldest_first; // rate_share::link
};

static struct slice share_key(const void *value)
{
    const struct rate_share *share = value;
    return (struct slice){ (const char *)share->who, HASH_LEN };
}

struct rate_limit *rate_limit_create(struct loop *loop, int64_t per_minute)
{
    if (per_minute <= 0)
        return NULL;
    struct rate_limit *limit = mem_new(struct rate_limit);
    limit->loop = loop;
    limit->each_us = MINUTE_US / per_minute;
    limit->burst = per_minute > 1 ? per_minute / 2 : 1;
    table_init(&limit->shares, share_key);
    list_init(&limit->oldest_first);
    return limit;
}

static void forget(struct rate_limit *limit, struct rate_share *share)
{
    table_remove(&limit->shares, share_key(share));
    list_remove(&share->link);
    free(share);
}

void rate_limit_destroy(struct rate_limit *limit)
{
    if (!limit)
        return;
    while (!list_empty(&limit->oldest_first))
        forget(limit, container_of(limit->oldest_first.next, struct rate_share, link));
    table_finish(&limit->shares);
    free(limit);
}

/* Names the share of a limit: a key shares it with every key of its environment, and with
 * every branch that it opens; a token has its own. */
static void name_share(const struct identity *who, unsigned char name[HASH_LEN])
{
    memset(name, 0, HASH_LEN);
    if (who->kind == CREDENTIAL_SECRET_KEY)
        memcpy(name, &account_of_keys(who->account)->number, sizeof(uint32_t));
    else
        memcpy(name, who->hash, HASH_LEN);
}

static struct rate_share *find(struct rate_limit *limit, const struct identity *who,
                               int64_t now)
{
    unsigned char name[HASH_LEN];
    name_share(who, name);
    struct rate_share *share =
        table_find(&limit->shares, (struct slice){ (const char *)name, HASH_LEN });
    if (share)
        return share;
    for (int i = 0; i < FORGET_EACH && !list_empty(&limit->oldest_first); i++) {
        share = container_of(limit->oldest_first.next, struct rate_share, link);
        if (share->whole_at > now && limit->shares.count < SHARES_MAX)
            break;
        forget(limit, share);
    }
    share = mem_new(struct rate_share);
    memcpy(share->who, name, HASH_LEN);
    table_insert(&limit->shares, share);
    list_append(&limit->oldest_first, &share->link);
    return share;
}

bool rate_limit_take(struct rate_limit *limit, const struct identity *who,
                     struct rate_limit_answer *answer)
{
    int64_t now = loop_now_ms(limit->loop) * 1000, wall = loop_wall_ms(limit->loop);
    int64_t room = limit->burst * limit->each_us;
    struct rate_share *share = find(limit, who, now);
    int64_t used = share->whole_at > now ? share->whole_at - now : 0;
    bool taken = used + limit->each_us <= room;
    int64_t until_us = taken ? used + limit->each_us : used + limit->each_us - room;

    if (taken)
        share->whole_at = now + used + limit->each_us;
    answer->limit = limit->burst;
    answer->remaining = taken ? (room - used) / limit->each_us - 1 : 0;
    answer->reset_ms = wall + (until_us + 999) / 1000;
    return taken;
}

static void add_number(struct api_call *call, const char *name, int64_t number)
{
    char text[24];
    snprintf(text, sizeof(text), "%lld", (long long)number);
    api_add_header(call, name, slice_of(text));
}

static void rate_limit_refuse(struct rate_limit *limit, struct api_call *call,
                              const struct rate_limit_answer *answer)
{
    static const char text[] = "Rate limit exceeded";
    int64_t ms = answer->reset_ms - loop_wall_ms(limit->loop);
    int64_t seconds = (ms + 999) / 1000;
    struct buf body = { 0 };
    add_number(call, "retry-after", seconds);
    buf_print(&body,
              "{\"title\":\"Rate Limit Exceeded\",\"status\":429,\"type\":\"about:blank\","
              "\"detail\":\"%s\",\"reset\":%lld,\"limit\":%lld,\"remaining\":0,"
              "\"secondsUntilReset\":%lld,\"error\":\"%s\"}",
              text, (long long)answer->reset_ms, (long long)answer->limit,
              (long long)seconds, text);
    metric_add(M_RATE_LIMITED, 1);
    api_reply_text(call, 429, "application/problem+json; charset=utf-8", buf_slice(&body));
    buf_finish(&body);
}

static bool counts(const struct api_call *call)
{
    const struct route *route = call->route;
    return slice_starts(call->x->path, "/api/") && !(route && route->auth & RATE_FREE);
}

static bool allows(struct rate_limit *limit, struct api_call *call,
                   const struct identity *who)
{
    struct rate_limit_answer answer;
    bool taken = rate_limit_take(limit, who, &answer);
    add_number(call, "x-ratelimit-limit", answer.limit);
    add_number(call, "x-ratelimit-remaining", answer.remaining);
    add_number(call, "x-ratelimit-reset", answer.reset_ms);
    if (!taken)
        rate_limit_refuse(limit, call, &answer);
    return taken;
}

bool rate_limit_allows(struct rate_limit *limit, struct api_call *call)
{
    return !limit || !call->identity || !counts(call) ||
           allows(limit, call, call->identity);
}

bool rate_limit_allows_use(struct rate_limit *limit, struct api_call *call,
                           const struct secret *secret)
{
    struct identity who = { .kind = CREDENTIAL_PERSONAL_TOKEN };
    memcpy(who.hash, secret->hash, HASH_LEN);
    return !limit || allows(limit, call, &who);
}
