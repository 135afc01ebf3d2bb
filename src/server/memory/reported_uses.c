/* reported_uses.c - walks over keys and tokens, and picks those that were used. */
#include "server/memory/reported_uses.h"

#include <string.h>

enum {
    EVERY_MS = 10 * 1000,
    LOOKED_AT_MAX = 2000, /* keys and tokens in one piece of a walk */
};

static void begin(struct reported_uses *reported, int64_t wall_ms)
{
    reported->since_ms = reported->before_ms;
    reported->before_ms = reported->began_ms;
    reported->began_ms = wall_ms;
}

static void end(struct reported_uses *reported, int64_t now_ms)
{
    reported->at = 0;
    reported->due_ms = now_ms + EVERY_MS;
}

size_t reported_uses_collect(struct reported_uses *reported,
                             const struct accounts *accounts, int64_t now_ms,
                             int64_t wall_ms, struct repl_use *list, size_t most)
{
    const struct secret *secret;
    size_t count = 0;
    if (!reported->at && now_ms < reported->due_ms)
        return 0;
    if (!reported->at)
        begin(reported, wall_ms);
    for (size_t i = 0; i < LOOKED_AT_MAX && count < most; i++) {
        if (!(secret = accounts_next_secret(accounts, &reported->at))) {
            end(reported, now_ms);
            return count;
        }
        if (secret->used_at < reported->since_ms ||
            !secret_has_unstored_use(secret, wall_ms))
            continue;
        memcpy(list[count].hash, secret->hash, HASH_LEN);
        list[count++].used_at = secret->used_at;
    }
    return count;
}
