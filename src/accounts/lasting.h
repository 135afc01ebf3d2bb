/* lasting.h - lasting sign-ins, with which a person stays signed in to the dashboard.
 *
 *   fresh sign-in ─► lasting sign-in ─► used ─► used ─► … ─► 12 h without use, 30 days,
 *                                         │                   signed out, or revoked
 *                                         └► token of one environment (auth.h)
 *
 * It is a token of its user of another kind. It has an id, which is looked up like a token.
 * No API call accepts the id as a credential (its prefix is not that of a token). A use must
 * prove more, in one of two ways:
 *
 *   code    "<id>.<value>" in a cookie. Each use replaces the value. An older one ends the
 *           lasting sign-in: two browsers have it, and one of them is a thief's.
 *   key     P-256, of which the browser keeps the private half. Each use signs a challenge.
 *
 * A response with the next code may be lost. So the code before the current one is accepted
 * for LASTING_REPEAT_MS after its use, and gets the same next code: nothing is forked, and a
 * thief who is that quick holds a code that the next use of the owner makes an old one. The
 * next code is in memory only. After a restart, the code before gets another next code
 * instead, and the lost one is an old one. The next gateway's clock may be earlier than that of
 * the one before, so a use may seem to be in the future.
 *
 * A challenge is random, in memory only, and signed once. So nothing can be signed in advance,
 * and no clock counts. A new challenge replaces the one before. */
#pragma once

#include "accounts/account_draft.h"

#define LASTING_PREFIX "tr_ses_"

enum {
    LASTING_ID_LEN = 39,                        /* prefix and random part */
    LASTING_CODE_LEN = LASTING_ID_LEN + 1 + 40, /* id, a dot, and the value */
    LASTING_REPEAT_MS = 30 * 1000,              /* see above */
    LASTING_CLOCK_MS =
        2 * 60 * 1000, /* most that the clock of the gateway before may be off */
};

/* Returns the id at the beginning of a code; absent if the text is not a code. */
struct slice lasting_id_of(struct slice code);

/* Makes a random id, or a code of the id. */
void lasting_generate_id(char id[LASTING_ID_LEN + 1]);
void lasting_generate_code(const char *id, char code[LASTING_CODE_LEN + 1]);

/* Finds a valid lasting sign-in by its id. Returns NULL if there is none. */
struct secret *lasting_find(struct accounts *accounts, struct slice id, int64_t now_ms);

enum lasting_code {
    LASTING_CURRENT,
    LASTING_REPEATED, /* the code before, shortly after its use */
    LASTING_OLD,      /* any other */
};

/* Compares in constant time. secret: a lasting sign-in with a code. */
enum lasting_code lasting_judge(const struct secret *secret, struct slice code,
                                int64_t now_ms);

/* Begins the state of one with a code of its id, or with the public half of a key. */
struct lasting lasting_with_code(const char *code);
struct lasting lasting_with_key(const unsigned char key[LASTING_KEY_LEN]);

/* Makes the challenge that the next use of a key must sign. Borrowed. */
const char *lasting_challenge(struct secret *secret);
/* Forgets the challenge, which a use has signed. */
void lasting_end_challenge(struct secret *secret);

/* Drafts a use of the current code, or of the code before (LASTING_REPEATED), which gets
 * another next code. Returns the new end. */
int64_t lasting_draft_code(struct draft *draft, const struct secret *secret,
                           enum lasting_code given, const char *next);
/* Drafts a use that signed its challenge. Returns the new end. */
int64_t lasting_draft_signed(struct draft *draft, const struct secret *secret);

/* Keeps the next code in memory, for a repeated use. */
void lasting_note_next(struct secret *secret, const char *next);
