/* user_tokens.c - limits the tokens of a user. */
#include "accounts/user_tokens.h"

static int64_t earlier_end(int64_t one, int64_t other)
{
    return !one || (other && other < one) ? other : one;
}

/* Returns NULL for a sign-in by a one-time link. */
static const struct secret *maker_of(const struct secret *by)
{
    if (!by->signed_in)
        return by;
    list_each (link, &by->user->secrets) {
        const struct secret *secret = container_of(link, struct secret, of_owner);
        if (by->by && strcmp(secret->document, by->by) == 0)
            return secret;
    }
    return NULL;
}

static size_t count_tokens(const struct user *user, int64_t now_ms)
{
    size_t count = 0;
    list_each (link, &user->secrets) {
        const struct secret *secret = container_of(link, struct secret, of_owner);
        count += !secret->signed_in && secret_is_valid(secret, now_ms);
    }
    return count;
}

enum err user_token_draft(struct draft *draft, const struct secret *by, struct slice name,
                          const char *token, int64_t *ends_at, struct failure *why)
{
    const struct secret *maker = maker_of(by);
    size_t count = count_tokens(by->user, draft->now_ms);
    if (count >= USER_TOKENS_MAX)
        return explain(why, ERR_RULE,
                       "You have too many valid tokens (%zu, max %d); revoke some", count,
                       USER_TOKENS_MAX);
    *ends_at = earlier_end(*ends_at, by->proof_ends_at);
    if (maker)
        *ends_at = earlier_end(*ends_at, maker->ends_at);
    draft_token(draft, by->user->id, maker, name, token, *ends_at);
    return OK;
}
