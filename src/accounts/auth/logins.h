/* logins.h - logins of the CLI that wait for a person to approve them in a browser.
 *
 *   begun (challenge of the CLI) ─► seen by a signed-in person ─► approved: a code for the CLI
 *        │ 10 minutes, 5 wrong proofs, or refused: gone          └─► proof: verifier and that code
 *
 * Who approves proves who the person is, the verifier (PKCE, RFC 7636) that the token goes to the
 * machine that has begun, and the approval code that the person's own browser has told it: a link
 * that somebody else sends is worth nothing to the sender. All of it is in memory: a restart ends
 * logins that wait, and the CLI begins again. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "accounts/accounts.h"
#include "base/list.h"
#include "base/slice.h"

enum {
    LOGIN_LIVES_MS = 10 * 60 * 1000,
    LOGIN_TRIES = 5,
    LOGINS_MAX = 4096,
    LOGINS_OF_NETWORK_MAX = 32, /* of one client address, or an IPv6 network of 48 bits */
    LOGINS_OF_PROXY_MAX = 512,  /* of all clients behind one that is not trusted */
    LOGIN_NETWORK_LEN = 16,
    LOGIN_CLIENT_MAX = 64,
    LOGIN_CODE_LEN = 32,
    LOGIN_CHALLENGE_LEN = 43, /* base64url of a SHA-256, RFC 7636 4.2 */
};

struct login {
    char code[LOGIN_CODE_LEN + 1];
    char challenge[LOGIN_CHALLENGE_LEN + 1];
    char approval[15];             /* "ABCD-EFGH-JKLM"; "": not approved yet */
    const struct secret *approver; /* the token that has approved, with which this ends */
    char client[LOGIN_CLIENT_MAX]; /* the address of who has begun; "": hidden by a proxy */
    unsigned char network[LOGIN_NETWORK_LEN]; /* what is counted of that */
    uint16_t port;      /* of 127.0.0.1 where the CLI listens; 0: the code is pasted */
    unsigned tries;     /* wrong proofs */
    int64_t created_at; /* Unix ms */
    int64_t ends_at;    /* monotonic ms */
    struct list link;   // logins::all, oldest first
};

struct logins;

struct logins *logins_create(void);
void logins_destroy(struct logins *logins);

/* client and network are the address, for people and as far as it counts. Clients that a proxy
 * hides have an empty client and share the network of the proxy. Returns NULL when too many
 * logins wait, of this network or in all. Hidden clients cannot be told apart, so that one of
 * them could shut out the others: the oldest hidden login that is not approved ends instead,
 * for a client of the same proxy or, when the table is full, for any client. */
struct login *logins_begin(struct logins *logins, const char *client,
                           const unsigned char network[LOGIN_NETWORK_LEN],
                           struct slice challenge, uint16_t port, int64_t now_ms,
                           int64_t wall_ms);

/* NULL: there is none, or its time is over. */
struct login *logins_find(struct logins *logins, struct slice code, int64_t now_ms);

/* Draws its approval code. approver: the personal token of who approves. */
void login_approve(struct login *login, const struct secret *approver);

/* Whether both are right; each wrong pair is counted, and the last that is allowed ends it. */
bool logins_prove(struct logins *logins, struct login *login, struct slice verifier,
                  struct slice approval);

void logins_end(struct logins *logins, struct login *login);
