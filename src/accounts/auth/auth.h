/* auth.h - who sends a request, and what that identity may do.
 *
 *   "Bearer …" ─► public token (JWT, pub: true) ─► environment, scopes, expiry
 *              ─► tr_pat_…                       ─► user
 *              ─► tr_wgt_…                       ─► workers of a project
 *              ─► the key of a build             ─► deployment, as long as it is built
 *              ─► anything else                  ─► secret key ─► environment
 *
 * Identities are cached by their hash, those of tokens until they expire. Scopes:
 * action[:type[:id]], only the first two colons separate.
 *
 * A public token may say for whom it was signed: act: {sub: user, pat: id of the personal
 * token that asked for it}. It ends with that one, and when the user is no longer in the
 * organization. */
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

/* Shared; counted by references on the loop thread. */
struct identity {
    uint32_t refs;
    enum credential kind;
    struct account *account; /* NULL for personal and workers' tokens */
    struct secret *secret;   /* what it hangs on: the key, the token, the signing key; of a
                                build's key one of its environment */
    struct user *user;       /* of a personal token */
    struct secret *granted_by; /* of a public token that was signed for a user (act): the
                                  personal token that asked for it; else NULL */
    char build[ID_MAX];        /* of a build's key: the deployment; else "" */
    bool one_time;             /* otu: the first trigger uses it up */
    unsigned char hash[32];    /* SHA-256 of the credential */
    int64_t expires_at;        /* Unix ms; 0: never */
    char *subject;             /* act.sub, or sub: who refreshes as whom; NULL for keys */
    char **scopes;
    size_t scope_count;
    char **skip_columns; /* realtime.skipColumns */
    size_t skip_count;
    size_t cost;      /* bytes, since it is remembered */
    struct list link; // auth::oldest_first
};

struct auth;

struct auth *auth_create(struct accounts *accounts);
/* NULL is fine. Identities that others hold live on. */
void auth_destroy(struct auth *auth);

/* header is the value of Authorization, "Bearer " optional; client the address that it came
 * from, for the log. A reference, the caller's. ERR_UNAUTHORIZED with the text that clients
 * expect; the log has more of the reason. */
enum err auth_identify(struct auth *auth, struct slice header, const char *client,
                       int64_t now_ms, struct identity **identity, struct failure *why);

/* A key that opens what the build of one deployment calls, and nothing else: known by its
 * hash, until it is dismissed. */
void auth_admit_build(struct auth *auth, const unsigned char hash[HASH_LEN],
                      struct account *account, const char *deployment);
/* Nothing happens when it is not known. */
void auth_dismiss_build(struct auth *auth, const unsigned char hash[HASH_LEN]);

/* The identity of a secret key of preview on one of its branches: a reference, the caller's. */
struct identity *identity_on_branch(const struct identity *identity,
                                    struct account *branch);

/* Its credential has neither expired nor been revoked, its branch not been archived. */
bool identity_is_valid(const struct identity *identity, int64_t now_ms);

/* The key or token was revoked or replaced, or the branch archived. */
bool identity_has_ended(const struct identity *identity, int64_t now_ms);

/* For the log: a connection ends with its credential, which has ended or expired. */
void identity_tell_end(const struct identity *identity, const char *connection,
                       int64_t now_ms);

/* What a socket or an event stream is told when its credential has ended. */
extern const char identity_ended_reason[];

/* NULL is fine. */
void identity_unref(struct identity *identity);
struct identity *identity_ref(struct identity *identity);

/* Does one of the scopes grant action on type:id? id absent: on the type as a whole. A
 * secret key may everything in its environment; a personal token nothing here. */
bool identity_may(const struct identity *identity, const char *action, const char *type,
                  struct slice id);

/* A public token that was signed for a user, whom its signer lets do what the scopes say
 * also where other public tokens end: neither for one use, nor without columns. */
bool identity_is_for_user(const struct identity *identity);

/* Does one of the scopes grant action on anything of the type at all? */
bool identity_may_some(const struct identity *identity, const char *action,
                       const char *type);

/* Appends a public token for the caller's environment with these scopes; the caller hands
 * its realtime claim on. */
void auth_sign_for(const struct identity *caller, const char *const *scopes, size_t count,
                   int64_t now_ms, int64_t lives_ms, struct buf *out);
