/* accounts.h - organizations, projects, environments with keys, and users with tokens.
 *
 * All of these together are called the accounts. But a struct account is one environment.
 *
 *   organization ─► project "proj_…" ─► environment dev | staging | prod | preview ─► key
 *        │                     │                                             └─► branch
 *        │                     └───► token of workers
 *        └────────► user ─► personal access token
 *
 * They are stored as documents, held in memory, and looked up by the SHA-256 of a secret.
 * The vault seals secret keys; these stay readable because they sign public tokens. Only
 * the hash of a token is stored. A branch is an environment with runs of its own; its
 * parent is the preview environment, whose key it shares. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "accounts/bootstrap.h"
#include "base/list.h"
#include "base/quota.h"
#include "base/text.h"
#include "base/vault/vault.h"
#include "runcast/store.h"

enum { BRANCH_NAME_MAX = 255 };

struct variables;

struct organization {
    char id[ID_MAX];
    char *name, *slug;
    int64_t created_at; /* Unix ms; 0: unknown */
    uint32_t version;   /* of its document */
    struct list link;   // accounts::organizations, or ::closed
};

/* Outer quotas of several environments. */
struct shared_quotas {
    struct quota answers;    // bytes of unsent responses; counted by net
    struct quota seats;      // long-lived connections
    struct quota batches;    // bytes of open batches
    struct quota streams;    // bytes of streams
    struct quota watched;    // filters
    struct quota configured; // queues that users have configured
    struct quota views;      // sets of columns in use
    struct quota figures;    // bytes of the figures of tasks
    struct quota unfinished; // unfinished runs; counted by the engine
};

struct project {
    char id[ID_MAX];
    char ref[PROJECT_REF_MAX];
    char *name, *slug;
    int64_t created_at; /* Unix ms; 0: unknown */
    int64_t deleted_at; /* Unix ms; 0: not deleted */
    bool forgotten;     /* the store has nothing of it any more */
    uint32_t version;   /* of its document */
    char organization_id[ID_MAX];
    struct organization *organization; /* set by accounts_link */
    struct list secrets;               // secret::of_owner; tokens of workers
    struct quota bodies;               // bytes of requests in progress; counted by net
    struct shared_quotas shared;       // of all its environments
    struct shared_quotas branches;  // of its preview branches together, inside those of all
    struct trimmed_quota finished;  // bytes of final runs in memory; counted by the engine
    struct quota branches_finished; // the same of its preview branches
    struct quota stored;            // bytes in the store; counted by the engine
    struct list link;               // accounts::projects, or ::deleted
};

/* A member of one organization.
 *
 * A person in several organizations has a user in each, all with the same address. */
struct user {
    char id[ID_MAX];
    char *name, *email;
    int64_t created_at; /* Unix ms; 0: unknown */
    uint32_t version;   /* of its document */
    char organization_id[ID_MAX];
    struct organization
        *organization;    /* set by accounts_link; NULL once the user was removed */
    struct list secrets;  // secret::of_owner
    struct list others;   // user::others, of the same address
    struct quota bodies;  // bytes of requests with these tokens; counted by net
    struct quota answers; // bytes of unsent responses; counted by net
    struct list link;     // accounts::users, or accounts::gone
};

/* One environment of a project: dev, staging, prod, preview, or a branch of preview. */
struct account {
    uint32_t number; /* its number in the store; from 1 */
    char id[ID_MAX]; /* opaque; the sub claim of its tokens */
    enum environment_type type;
    char project_id[ID_MAX];
    struct project *project;     /* set by accounts_link */
    const char *secret_key;      /* clear, in memory only; set by accounts_link */
    struct list secrets;         // secret::of_owner; none of a branch
    struct variables *variables; /* its own; NULL: none was ever set */
    struct quota bodies;         /* quota of requests with its keys, within the project's */

    /* Only of a branch; NULL and "" otherwise. */
    char parent_id[ID_MAX];
    struct account *parent; /* set by accounts_link */
    char *branch;           /* NULL also after accounts_shrink */
    char *branch_key;       /* "<parent id>:<branch>" */
    bool archived;          /* or its project was deleted, which ends any environment */
    bool emptied;           /* the store has nothing of it any more but its document */
    bool forgotten;         /* the store does not even have its document any more */
    int64_t created_at;
    int64_t archived_at; /* Unix ms; 0: not archived */

    uint32_t version; /* of its document */
    /* Set by accounts_link, only of a preview environment: open branches, and archived
     * branches of which the store still has something. */
    uint32_t branch_count, archived_count;
};

enum {
    LASTING_KEY_LEN = 65,       /* a point of P-256: 4, x and y */
    LASTING_CHALLENGE_LEN = 40, /* characters of a random text */
};

/* The state of a lasting sign-in, against which a use is judged (lasting.h). */
struct lasting {
    /* of the current code, and of the one before; zeros: none */
    unsigned char current[HASH_LEN], before[HASH_LEN];
    int64_t used_at; /* Unix ms of its last use; 0: none */
    bool has_key;    /* it has a key, and no code */
    unsigned char key[LASTING_KEY_LEN];
    char challenge[LASTING_CHALLENGE_LEN + 1]; /* in memory only; "": none */
    char *next; /* the current code in clear, for a repeated use; NULL: not in memory */
};

/* A secret key, a personal access token or a worker token.
 *
 * An environment has one main key. It signs public tokens, and tasks and the CLI receive
 * it. Users may make more keys, each with a label; they open the same environment. A
 * sign-in is a personal token with which a person uses the dashboard. A lasting sign-in is
 * one that no call accepts as a credential.
 *
 * After it has ended, it is freed with its last reference. Reference-counted on the loop
 * thread. */
struct secret {
    uint32_t refs;
    unsigned char hash[HASH_LEN];
    char owner_id[ID_MAX]; /* of its environment, user or project */
    char *document;        /* name of its document */
    uint32_t version;      /* of its document */
    char *key;             /* clear; NULL: this is a token, or it has ended */
    char *name;         /* of a token: display name; of a key: its label; NULL: main key */
    int64_t created_at; /* Unix ms; 0: unknown */
    int64_t ends_at;    /* Unix ms, of a replaced key or a token with a time limit:
                            * valid until then; 0: no limit */
    int64_t used_at;    /* Unix ms of the last request with it; 0: none */
    int64_t stored_use; /* used_at in its document */
    bool ended;         /* revoked, or its project deleted */
    bool replaced;      /* a key that another one has replaced */
    bool signed_in;     /* a sign-in */
    struct lasting *lasting; /* NULL: not a lasting sign-in */
    char *by; /* of a token: document of the personal token that made it; of a
                         * replaced key: of the one that replaced it; NULL: none */
    /* End of the token that last confirmed it; of a lasting sign-in, of the token that last
     * confirmed its maker before it was made; 0: none */
    int64_t proof_ends_at;
    /* The last proof of who signed in, in memory only: monotonic ms, and Unix ms; 0: none */
    int64_t fresh_at, fresh_wall_ms;
    unsigned serves;         /* of a worker token: bits of enum environment_type; else 0 */
    bool serves_all;         /* a worker token for all projects; it has no document */
    char only[ID_MAX];       /* only for projects of this organization; "": any */
    struct account *account; /* of a key; set by accounts_link */
    struct user *user;       /* of a personal token; set by accounts_link */
    struct project *project; /* of a worker token; set by accounts_link */
    struct list of_owner;    // account::, user:: or project::secrets, or accounts::ended
};

struct accounts;

struct accounts *accounts_create(struct vault *vault);
/* Wipes the keys. Ignores NULL. */
void accounts_destroy(struct accounts *accounts);

/* Adds one document of accounts; any order will do before accounts_link.
 *
 * Takes the kinds DOC_ORGANIZATION … DOC_TOKEN and DOC_WORKER_TOKEN. Returns ERR_INVALID if
 * a sealed key cannot be opened (wrong encryption key) or the document is damaged. */
enum err accounts_add(struct accounts *accounts, const struct document *document,
                      struct failure *why);

/* Applies a committed change of such a document; call accounts_link afterwards.
 *
 * Changes are: new documents, archived branches, replaced keys, removed keys and tokens,
 * other names, removed users, deleted projects and organizations. */
enum err accounts_apply(struct accounts *accounts, const struct change *change,
                        struct failure *why);

/* Resolves the references between documents. Call it again after more were added. */
enum err accounts_link(struct accounts *accounts, struct failure *why);

bool accounts_empty(const struct accounts *accounts);

/* Borrowed. The vault that seals the keys. */
struct vault *accounts_vault(const struct accounts *accounts);

/* Notes the next version of a DOC_KEY document, which was sealed with another vault key. */
void accounts_renew_key(struct accounts *accounts, const struct document *before);

/* Makes the changes for the first organization, project, user, four environments and token.
 *
 * The caller commits them, adds them with accounts_add and releases their texts. Returns
 * the count, at most 16. */
size_t accounts_bootstrap(struct accounts *accounts, const struct bootstrap *bootstrap,
                          int64_t now_ms, struct change changes[16]);

/* Finds a secret by its clear text; hashes are compared in constant time. Returns NULL if
 * it is unknown or has ended. */
struct secret *accounts_secret(struct accounts *accounts, struct slice secret,
                               int64_t now_ms);
struct account *accounts_by_id(struct accounts *accounts, struct slice id);
struct account *accounts_by_number(struct accounts *accounts, uint32_t number);
struct project *accounts_project(struct accounts *accounts, struct slice ref);
/* Finds one of the four environments of a project; accounts_branch finds branches. */
struct account *accounts_environment(struct accounts *accounts,
                                     const struct project *project,
                                     enum environment_type type);
/* Returns NULL if the branch is unknown or archived. */
struct account *accounts_branch(struct accounts *accounts, const struct account *preview,
                                struct slice name);
/* Frees what an ended environment does not need: its variables and the name of its branch.
 *
 * Call it once the environment of an archived branch or a deleted project was dropped from
 * memory. The account keeps what identifies its tokens, its data in the store and its
 * number. */
void accounts_shrink(struct account *account);

/* Call it once the store has nothing of an archived branch any more. */
void accounts_forget(struct account *account);
/* Returns true if a worker token serves the environment.
 *
 * A branch counts as preview. The preview environment itself has no runs. */
bool secret_serves(const struct secret *secret, const struct account *account);

/* Lists and audit lines show a secret as the first digits of its hash. */
enum { SECRET_ID_LEN = 12 };
void secret_show_id(const struct secret *secret, char id[SECRET_ID_LEN + 1]);
/* Finds a secret of one owner by that id. Returns NULL if there is none. */
struct secret *secret_find(const struct list *of_owner, const char *id);

/* Iterates over those that have not been removed; *at is 0 at first. NULL: no more. */
struct secret *accounts_next_secret(const struct accounts *accounts, size_t *at);

/* For pointers that are kept beyond a turn of the loop. Both ignore NULL. */
struct secret *secret_ref(struct secret *secret);
void secret_unref(struct secret *secret);

/* Returns true for a worker token, of one project or of all. */
bool secret_is_of_worker(const struct secret *secret);

/* Until the process ends, admits a worker token for all projects, but not for their dev
 * environments.
 *
 * only: limits it to projects of that organization; NULL: any. Returns ERR_INVALID if the
 * token has the wrong form or is known already. */
enum err accounts_serve_all(struct accounts *accounts, struct slice token,
                            const struct organization *only);

/* Returns true if the user, or another user of the same address, is in the organization. */
bool user_is_in(const struct user *user, const struct organization *organization);
/* Returns true if the project belongs to one of the user's organizations. */
bool user_sees(const struct user *user, const struct project *project);

/* Returns true unless it was revoked or its end (ends_at) has passed. */
bool secret_is_valid(const struct secret *secret, int64_t now_ms);

/* Returns true if its document lacks its last use. */
bool secret_has_unstored_use(const struct secret *secret, int64_t now_ms);

/* Notes a use at another gateway. Does nothing if the hash is unknown. */
void accounts_note_use(struct accounts *accounts, const unsigned char hash[HASH_LEN],
                       int64_t used_at, int64_t now_ms);

/* Returns how many secrets of the list are valid. */
size_t secrets_count(const struct list *of_owner, int64_t now_ms);

/* Notes that the person has just proved who signs in. now_ms is monotonic. */
void secret_prove(struct secret *secret, int64_t now_ms, int64_t wall_ms);
/* Returns true if that was within the last ten minutes, by either clock.
 *
 * The wall clock may be set back, and the monotonic one stops while a machine sleeps. */
enum { SECRET_FRESH_MS = 10 * 60 * 1000 };
bool secret_is_fresh(const struct secret *secret, int64_t now_ms, int64_t wall_ms);

/* Returns the environment that has its keys: of a branch its parent, else itself. */
struct account *account_of_keys(struct account *account);

/* Returns true if both are preview branches of one project, or their parent. At the limits
 * of a project, they count as one environment. */
bool accounts_are_branches(const struct account *one, const struct account *two);

/* Returns the outer quotas of an environment: those of its project, or, of preview and its
 * branches, those that these have together. */
struct shared_quotas *account_shared_quotas(const struct account *account);

/* Iterates over all environments by number, including archived branches.
 *
 * Start with NULL; returns NULL at the end. */
struct account *accounts_next(struct accounts *accounts, const struct account *previous);
/* Returns a number for the next environment; 0 if there are too many. */
uint32_t accounts_free_number(const struct accounts *accounts);
/* Numbers below free_number were used before, some by environments that are forgotten. */
void accounts_note_number(struct accounts *accounts, uint32_t free_number);
/* Returns NULL if the organization has no users. */
struct user *accounts_first_user(struct accounts *accounts,
                                 const struct organization *organization);
/* Finds by id, or by the name people use: email or slug. Returns NULL if unknown. */
struct user *accounts_user(struct accounts *accounts, struct slice email_or_id);
struct organization *accounts_organization(struct accounts *accounts,
                                           struct slice slug_or_id);
/* Lists by each struct's member link, in order of creation. */
const struct list *accounts_organizations(const struct accounts *accounts);
const struct list *accounts_projects(const struct accounts *accounts);
/* Deleted projects; the store may still have data of some. */
const struct list *accounts_deleted_projects(const struct accounts *accounts);
const struct list *accounts_users(const struct accounts *accounts);

/* Returns a counter that grows whenever credentials or branches end, or an end was set.
 *
 * When it has changed, or the time of accounts_next_end has come, check open
 * connections. */
uint64_t accounts_endings(const struct accounts *accounts);
/* Returns the next time after now_ms when a secret ends, in Unix ms; 0: none. */
int64_t accounts_next_end(struct accounts *accounts, int64_t now_ms);
