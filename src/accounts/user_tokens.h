/* user_tokens.h - decides which tokens and sign-ins a user may get, and when they end.
 *
 *   personal token ─┬─► token ─► token …
 *                   └─► sign-in ─► token …, lasting sign-in
 *   one-time link ────► sign-in ─► token …, lasting sign-in
 *
 * The maker of a token is the personal token that made it, or that signed in the sign-in
 * that made it. A token ends no later than its maker, and with it. A sign-in by a one-time
 * link makes tokens without a maker. */
#pragma once

#include "accounts/account_draft.h"

enum {
    USER_TOKENS_MAX = 50, /* valid ones of a user; runcast token create makes more */
    SIGN_INS_MAX = 10,    /* valid ones by one token, or by all links of a user */
    LASTING_MAX = 10,     /* the same of lasting sign-ins */
};

/* Drafts a token that a personal token or sign-in makes for its user.
 *
 * ends_at: Unix ms; 0: valid until revoked. Returns the end of the token in it, which may
 * be earlier. ERR_RULE: the user has too many tokens. */
enum err user_token_draft(struct draft *draft, const struct secret *by, struct slice name,
                          const char *token, int64_t *ends_at, struct failure *why);

/* Drafts a sign-in for the user of a personal token or one-time link, and ends the link.
 *
 * Returns its end: in 12 hours, or that of the token. Sign-ins do not count as tokens and
 * are never refused: beyond SIGN_INS_MAX, the oldest sign-in of the same maker ends. So a
 * thief of one token cannot shut out the owner, who has a link or another token. */
int64_t user_sign_in_draft(struct draft *draft, const struct secret *code, bool is_link,
                           const char *token);

/* Drafts a lasting sign-in for the user of a sign-in, with the maker of that (lasting.h).
 *
 * Returns its end, which a use moves. Beyond LASTING_MAX, the oldest one of the same maker
 * ends. */
int64_t user_lasting_draft(struct draft *draft, const struct secret *sign_in,
                           const char *id, const struct lasting *lasting);

/* Returns the end of a lasting sign-in that is used now: in 12 hours, but no later than 30
 * days after it was made, than its maker, or than the token that confirmed the sign-in. */
int64_t user_lasting_end(const struct secret *secret, int64_t now_ms);

/* Drafts the end of as many sign-ins of the person as fit, lasting ones too. Returns true if
 * there are more. The person's users in other organizations see the same projects. */
bool user_sign_out_draft(struct draft *draft, const struct user *user);
