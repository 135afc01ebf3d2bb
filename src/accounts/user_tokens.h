/* user_tokens.h - decides which tokens and sign-ins a user may get, and when they end.
 *
 *   personal token ─┬─► token ─► token …
 *                   └─► sign-in ─► token …
 *   one-time link ────► sign-in ─► token …
 *
 * The maker of a token is the personal token that made it, or that signed in the sign-in
 * that made it. A token ends no later than its maker, and with it. A sign-in by a one-time
 * link makes tokens without a maker. */
#pragma once

#include "accounts/account_draft.h"

enum { USER_TOKENS_MAX = 50 /* valid ones of a user; runcast token create makes more */ };

/* Drafts a token that a personal token or sign-in makes for its user.
 *
 * ends_at: Unix ms; 0: valid until revoked. Returns the end of the token in it, which may
 * be earlier. ERR_RULE: the user has too many tokens. */
enum err user_token_draft(struct draft *draft, const struct secret *by, struct slice name,
                          const char *token, int64_t *ends_at, struct failure *why);
