/* logins.h - logins of the CLI that wait for a person to approve them in a browser.
 *
 *   begun (CLI sends challenge) ─► seen by a signed-in person ─► approved: code for the CLI
 *        │ 10 min, 5 wrong proofs, or rejected: gone             └─► proof: verifier + code
 *
 * The approver proves who the person is. The verifier (PKCE, RFC 7636) proves that the
 * token goes to the machine that began the login. The approval code, shown in the person's
 * own browser, makes a link from somebody else useless to its sender. Logins are kept in
 * memory only: a restart ends them, and the CLI begins again. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "accounts/accounts.h"
#include "base/list.h"
#include "base/slice.h"

enum {
    LOGIN_TTL_MS = 10 * 60 * 1000,
    LOGIN_TRIES = 5,
    LOGINS_MAX = 4096,
    LOGINS_OF_NETWORK_MAX = 32, /* per client address, or IPv6 network of 48 bits */
    LOGINS_OF_PROXY_MAX = 512,  /* for all clients that one untrusted proxy hides */
    LOGIN_NETWORK_LEN = 16,
    LOGIN_CLIENT_MAX = 64,
    LOGIN_CODE_LEN = 32,
    LOGIN_CHALLENGE_LEN = 43, /* base64url of a SHA-256, RFC 7636 4.2 */
};

struct login {
    char code[LOGIN_CODE_LEN + 1];
    char challenge[LOGIN_CHALLENGE_LEN + 1];
    char approval[15];             /* "ABCD-EFGH-JKLM"; "": not approved yet */
    struct secret *approver;       /* the token or sign-in that approved; NULL: none yet */
    char client[LOGIN_CLIENT_MAX]; /* the address that began it; "": hidden by a proxy */
    /* the part of the address that limits count */
    unsigned char network[LOGIN_NETWORK_LEN];
    /* port on 127.0.0.1 where the CLI listens; 0: the person pastes the code */
    uint16_t port;
    unsigned tries;     /* wrong proofs */
    int64_t created_at; /* Unix ms */
    int64_t ends_at;    /* monotonic ms */
    struct list link;   // logins::all, oldest first
};

struct logins;

struct logins *logins_create(void);
void logins_destroy(struct logins *logins);

/* Begins a login. Returns NULL if too many are pending, of this network or in all.
 *
 * client and network are the address: as text, and the part that limits count. Clients
 * hidden by a proxy have an empty client and share the network of the proxy. One hidden
 * client could shut out the others, because they cannot be distinguished. So instead of a
 * rejection the oldest hidden login that is not approved ends: for a client of the same
 * proxy or, when the table is full, for any client. */
struct login *logins_begin(struct logins *logins, const char *client,
                           const unsigned char network[LOGIN_NETWORK_LEN],
                           struct slice challenge, uint16_t port, int64_t now_ms,
                           int64_t wall_ms);

/* Returns NULL if it is unknown or has expired. */
struct login *logins_find(struct logins *logins, struct slice code, int64_t now_ms);

/* Makes its approval code. approver: the personal token of the approving person. */
void login_approve(struct login *login, struct secret *approver);

/* Returns true if verifier and approval code are both right.
 *
 * A wrong pair is counted; after LOGIN_TRIES of them the login ends. */
bool logins_prove(struct logins *logins, struct login *login, struct slice verifier,
                  struct slice approval);

void logins_end(struct logins *logins, struct login *login);
