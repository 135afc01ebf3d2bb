/* user_tokens.c - limits the tokens of a user. */
#include "accounts/user_tokens.h"

enum { SIGNED_IN_MS = 12 * 60 * 60 * 1000, LASTING_IDLE_MS = 12 * 60 * 60 * 1000 };

static const int64_t lasting_longest_ms = INT64_C(30) * 24 * 60 * 60 * 1000;

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

static bool is_made_by(const struct secret *secret, const struct secret *maker)
{
    return maker ? secret->by && strcmp(secret->by, maker->document) == 0 : !secret->by;
}

/* Makes space for another sign-in of the maker, or lasting sign-in. There is one too many at
 * most, unless the gateway had another limit before. */
static void end_oldest(struct draft *draft, const struct user *user,
                       const struct secret *maker, bool is_lasting, int max)
{
    const struct secret *oldest = NULL;
    int count = 0;
    list_each (link, &user->secrets) {
        const struct secret *secret = container_of(link, struct secret, of_owner);
        if (!secret->signed_in || is_lasting != (secret->lasting != NULL) ||
            !is_made_by(secret, maker) || !secret_is_valid(secret, draft->now_ms))
            continue;
        count++;
        if (!oldest || secret->created_at < oldest->created_at)
            oldest = secret;
    }
    if (count >= max)
        draft_end(draft, oldest);
}

int64_t user_sign_in_draft(struct draft *draft, const struct secret *code, bool is_link,
                           const char *token)
{
    const struct secret *maker = is_link ? NULL : code;
    int64_t ends_at = draft->now_ms + SIGNED_IN_MS;
    if (maker)
        ends_at = earlier_end(ends_at, maker->ends_at);
    else
        draft_end(draft, code);
    end_oldest(draft, code->user, maker, false, SIGN_INS_MAX);
    draft_sign_in(draft, code->user->id, maker, token, ends_at);
    return ends_at;
}

/* ---- lasting sign-ins ---- */

/* of: itself, or the sign-in that makes it. A use must not outlast the token that confirmed
 * that sign-in. */
static int64_t lasting_end(const struct secret *of, int64_t made_at, int64_t now_ms)
{
    const struct secret *maker = maker_of(of);
    int64_t ends_at = earlier_end(now_ms + LASTING_IDLE_MS, made_at + lasting_longest_ms);
    ends_at = earlier_end(ends_at, of->proof_ends_at);
    return maker ? earlier_end(ends_at, maker->ends_at) : ends_at;
}

int64_t user_lasting_draft(struct draft *draft, const struct secret *sign_in,
                           const char *id, const struct lasting *lasting)
{
    const struct secret *maker = maker_of(sign_in);
    int64_t ends_at = lasting_end(sign_in, draft->now_ms, draft->now_ms);
    end_oldest(draft, sign_in->user, maker, true, LASTING_MAX);
    draft_lasting(draft, sign_in, maker, id, lasting, ends_at);
    return ends_at;
}

int64_t user_lasting_end(const struct secret *secret, int64_t now_ms)
{
    return lasting_end(secret, secret->created_at, now_ms);
}

static bool end_sign_ins(struct draft *draft, const struct user *user)
{
    list_each (link, &user->secrets) {
        const struct secret *secret = container_of(link, struct secret, of_owner);
        if (!secret->signed_in)
            continue;
        if (draft->count == DRAFT_MAX)
            return true;
        draft_end(draft, secret);
    }
    return false;
}

bool user_sign_out_draft(struct draft *draft, const struct user *user)
{
    bool has_more = end_sign_ins(draft, user);
    list_each (link, &user->others)
        has_more |= end_sign_ins(draft, container_of(link, const struct user, others));
    return has_more;
}
