/* auth.h - identifies the sender of a request, and checks what it may do.
 *
 *   "Bearer …" ─► public token (JWT, pub: true) ─► environment, scopes, expiry
 *              ─► tr_pat_…                       ─► user
 *              ─► tr_wgt_…                       ─► workers of a project
 *              ─► key of a build                 ─► deployment, while it is built
 *              ─► anything else                  ─► secret key ─► environment
 *
 * Identities are cached by the hash of their credential, those of tokens until they expire.
 * Scopes are action[:type[:id]]; only the first two colons separate.
 *
 * A public token may name the user it was signed for: act: {sub: user, pat: id of the
 * personal token that requested it}. It ends together with that personal token, or when the
 * user leaves the organization. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "accounts/accounts.h"
#include "base/slice.h"

enum credential {
    CREDENTIAL_NONE,
    CREDENTIAL_SECRET_KEY,
    CREDENTIAL_PUBLIC_TOKEN,
    CREDENTIAL_PERSONAL_TOKEN,
    CREDENTIAL_WORKER_TOKEN,
    CREDENTIAL_BUILD_KEY
};

/* Shared; reference-counted on the loop thread. */
struct identity {
    uint32_t refs;
    enum credential kind;
    struct account *account;   /* NULL for personal tokens and worker tokens */
    struct secret *secret;     /* it ends with this: the key, the token or the signing key;
                                * for a build key, a key of its environment */
    struct user *user;         /* only of a personal token */
    struct secret *granted_by; /* only of a public token signed for a user (act): the
                                * personal token that requested it; else NULL */
    char build[ID_MAX];        /* only of a build key: the deployment; else "" */
    bool one_time;             /* otu claim: the first trigger uses it up */
    unsigned char hash[32];    /* SHA-256 of the credential */
    int64_t expires_at;        /* Unix ms; 0: never */
    /* act.sub, or sub: the user for whom a token is refreshed; NULL for keys */
    char *subject;
    char **scopes;
    size_t scope_count;
    char **skip_columns; /* realtime.skipColumns */
    size_t skip_count;
    size_t cost;      /* bytes; set when it is cached */
    struct list link; // auth::oldest_first
};

struct auth;

struct auth *auth_create(struct accounts *accounts);
/* Identities that others reference stay valid. Ignores NULL. */
void auth_destroy(struct auth *auth);

/* Identifies the credential and sets *identity to a new reference, owned by the caller.
 *
 * header: the value of Authorization, with or without "Bearer ". client: its address, for
 * the log. Returns ERR_UNAUTHORIZED with the text that clients expect; the log has more
 * detail. */
enum err auth_identify(struct auth *auth, struct slice header, const char *client,
                       int64_t now_ms, struct identity **identity, struct failure *why);

/* Admits a key, by its hash, for the calls of one deployment's build only.
 *
 * It is valid until it is dismissed. */
void auth_admit_build(struct auth *auth, const unsigned char hash[HASH_LEN],
                      struct account *account, const char *deployment);
/* Does nothing if the key is unknown. */
void auth_dismiss_build(struct auth *auth, const unsigned char hash[HASH_LEN]);

/* Returns the identity of a preview secret key for calls to one of its branches.
 *
 * It is a new reference, owned by the caller. */
struct identity *identity_on_branch(const struct identity *identity,
                                    struct account *branch);

/* Returns true if the credential has not expired and has not ended. */
bool identity_is_valid(const struct identity *identity, int64_t now_ms);

/* Returns true if the key or token was revoked or replaced, or the environment archived. */
bool identity_has_ended(const struct identity *identity, int64_t now_ms);

/* Logs that a connection is closed because its credential has ended or expired. */
void identity_log_end(const struct identity *identity, const char *connection,
                      int64_t now_ms);

/* Close reason for sockets and event streams when the credential has ended. */
extern const char identity_ended_reason[];

/* Ignores NULL. */
void identity_unref(struct identity *identity);
struct identity *identity_ref(struct identity *identity);

/* Returns true if a scope grants action on type:id; id absent: on the type as a whole.
 *
 * A secret key may do everything in its environment. A public token that was signed for a
 * user (act) may also trigger the tasks that a scope lets it write. Other kinds of
 * credentials may do nothing here. */
bool identity_may(const struct identity *identity, const char *action, const char *type,
                  struct slice id);

/* Returns true for a public token of a user, neither one-time nor with skipped columns.
 *
 * It was signed for a user (act). Its scopes also count where other public tokens are
 * rejected. */
bool identity_is_for_user(const struct identity *identity);

/* Returns true if a scope grants action on at least one thing of the type. */
bool identity_may_some(const struct identity *identity, const char *action,
                       const char *type);

/* Returns the key that signs public tokens of the account for this identity: the one that
 * it has proved, so that they end with that key; for a user, the main one. */
struct slice identity_signing_key(const struct identity *identity,
                                  const struct account *account);

/* Appends a public token for the caller's environment, with these scopes.
 *
 * It has the caller's realtime and act claims too. */
void auth_sign_for(const struct identity *caller, const char *const *scopes, size_t count,
                   int64_t now_ms, int64_t ttl_ms, struct buf *out);

/* Appends a public token of the account with the scope admin, for the user of a lasting
 * sign-in, or of another token of a person. It ends with that secret. */
void auth_sign_for_user(const struct secret *grant, const struct account *account,
                        int64_t now_ms, int64_t ttl_ms, struct buf *out);
