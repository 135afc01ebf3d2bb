/* accounts.h - who exists: organizations, projects, environments with their keys, users
 * with their tokens.
 *
 *   organization ─► project "proj_…" ─► environment dev | staging | prod | preview ─► key
 *        │                     │                                             └─► branch
 *        │                     └───► token of workers
 *        └────────► user ─► personal access token
 *
 * Kept as documents, held in memory, looked up by SHA-256 of the secret. Secret keys are
 * sealed by the vault and stay readable (they sign public tokens); of tokens
 * only the hash is kept. A branch is an environment of its own, with its own runs:
 * its parent is the preview environment, whose key it shares. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "accounts/bootstrap.h"
#include "base/list.h"
#include "base/room.h"
#include "base/text.h"
#include "base/vault/vault.h"
#include "runcast/store.h"

enum { BRANCH_NAME_MAX = 255 };

struct variables;

struct organization {
    char id[ID_MAX];
    char *name, *slug;
    int64_t created_at; /* Unix ms; 0: not known */
    uint32_t version;   /* of its document */
    struct list link;   // accounts::organizations, or ::closed
};

struct project {
    char id[ID_MAX];
    char ref[PROJECT_REF_MAX];
    char *name, *slug;
    int64_t created_at; /* Unix ms; 0: not known */
    int64_t deleted_at; /* Unix ms; 0: not deleted */
    bool forgotten;     /* nothing of it is in the store any more */
    uint32_t version;   /* of its document */
    char organization_id[ID_MAX];
    struct organization *organization;   /* since accounts_link */
    struct list secrets;                 // secret::of_owner; tokens of workers
    struct room bodies;                  // of requests under way; counted by net
    struct room answers;                 // unsent ones; the same
    struct room seats, batches, streams; // outside of those of its environments
    struct room watched;                 // outside of those too; counts filters
    struct room configured;              // the same; counts queues with settings of users
    struct room views;                   // sets of columns in use in its environments
    struct room unfinished;              // runs of its environments; counted by the engine
    struct trimmed_room finished;        // bytes of finished ones in memory; the same
    struct room stored;                  // bytes in the store; counted by the engine
    struct list link;                    // accounts::projects, or ::deleted
};

struct user { /* a person in an organization: in several, one for each, of one address */
    char id[ID_MAX];
    char *name, *email;
    int64_t created_at; /* Unix ms; 0: not known */
    uint32_t version;   /* of its document */
    char organization_id[ID_MAX];
    struct organization
        *organization;   /* since accounts_link; NULL again of one who has left */
    struct list secrets; // secret::of_owner
    struct list others;  // user::others, of the same address
    struct room bodies;  // of requests with these tokens; counted by net
    struct room answers; // unsent ones; the same
    struct list link;    // accounts::users, or accounts::gone
};

struct account {     /* one environment */
    uint32_t number; /* its environment number in the store; from 1 */
    char id[ID_MAX]; /* opaque: the sub of its tokens */
    enum environment_type type;
    char project_id[ID_MAX];
    struct project *project;     /* since accounts_link */
    const char *secret_key;      /* clear, in memory only; since accounts_link */
    struct list secrets;         // secret::of_owner; none of a branch
    struct variables *variables; /* of its own; NULL: none were ever set */
    struct room bodies;          /* of requests by its keys; inside of the project's */

    /* Of a branch; NULL and "" for others. */
    char parent_id[ID_MAX];
    struct account *parent; /* since accounts_link */
    char *branch;           /* NULL too of one that is archived, see accounts_shrink */
    char *branch_key;       /* "<parent id>:<branch>" */
    bool archived;          /* or its project is deleted, which ends any environment */
    bool emptied;           /* nothing of it is in the store any more but its document */
    bool forgotten;         /* nothing at all */
    int64_t created_at;
    int64_t archived_at; /* Unix ms; 0: not archived */

    uint32_t version; /* of its document */
    /* Of preview, since accounts_link: branches that are there, and those archived of which
     * something is in the store. */
    uint32_t branch_count, archived_count;
};

/* A secret key, a personal access token or one of workers. It stays in memory when it has
 * ended, because identities point to it. */
struct secret {
    unsigned char hash[HASH_LEN];
    char owner_id[ID_MAX];   /* environment, user or project */
    char *document;          /* the name of its document */
    uint32_t version;        /* of its document */
    char *key;               /* clear; NULL: a token, or ended */
    char *name;              /* of a token, for people */
    int64_t created_at;      /* Unix ms; 0: not known */
    int64_t ends_at;         /* Unix ms: a key that was replaced, or a token for a time, is
                                valid until then; 0: for ever */
    int64_t used_at;         /* Unix ms: by a request, since the start; 0: not yet */
    bool ended;              /* revoked */
    unsigned serves;         /* of a worker's token: bits of environment types; else 0 */
    bool serves_all;         /* a worker's token of all projects; no document says so */
    char only[ID_MAX];       /* of the projects of this organization; "": of any */
    struct account *account; /* of a key; since accounts_link */
    struct user *user;       /* of a personal token; since accounts_link */
    struct project *project; /* of a worker's token; since accounts_link */
    struct list of_owner;    // account::, user:: or project::secrets, or accounts::ended
};

struct accounts;

struct accounts *accounts_create(struct vault *vault);
/* Wipes the keys. NULL is fine. */
void accounts_destroy(struct accounts *accounts);

/* Takes one document (of DOC_ORGANIZATION … DOC_TOKEN, DOC_WORKER_TOKEN) into memory; order
 * does not matter before accounts_link. ERR_INVALID: a sealed key does not open (wrong
 * encryption key), or the document is damaged. */
enum err accounts_add(struct accounts *accounts, const struct document *document,
                      struct failure *why);

/* Takes a committed change of such a document: new ones, branches archived, keys that were
 * replaced, keys and tokens that are gone, other names, users that have left, projects and
 * organizations deleted. accounts_link must follow. */
enum err accounts_apply(struct accounts *accounts, const struct change *change,
                        struct failure *why);

/* Resolves references once all are in; again after more were added. */
enum err accounts_link(struct accounts *accounts, struct failure *why);

bool accounts_empty(const struct accounts *accounts);

/* Borrowed: what the keys are sealed with. */
struct vault *accounts_vault(const struct accounts *accounts);

/* A document of DOC_KEY was written again, sealed with another key: the next version. */
void accounts_renew_key(struct accounts *accounts, const struct document *before);

/* The changes that make organization, project, user, four environments and the token; to be
 * committed by the caller, who also adds them with accounts_add. Returns the count; at most
 * 16. The texts are the caller's to finish. */
size_t accounts_bootstrap(struct accounts *accounts, const struct bootstrap *bootstrap,
                          int64_t now_ms, struct change changes[16]);

/* By secret, in constant time for equal hashes; NULL when unknown or ended. */
struct secret *accounts_secret(struct accounts *accounts, struct slice secret,
                               int64_t now_ms);
struct account *accounts_by_id(struct accounts *accounts, struct slice id);
struct account *accounts_by_number(struct accounts *accounts, uint32_t number);
struct project *accounts_project(struct accounts *accounts, struct slice ref);
/* One of the four environments of a project; a branch is found by accounts_branch. */
struct account *accounts_environment(struct accounts *accounts,
                                     const struct project *project,
                                     enum environment_type type);
/* NULL: unknown or archived. */
struct account *accounts_branch(struct accounts *accounts, const struct account *preview,
                                struct slice name);
/* The environment of an archived branch, or of a deleted project, has left memory: of its
 * account only what tells its tokens, its data in the store and its number stays. */
void accounts_shrink(struct account *account);

/* Nothing of an archived branch is in the store any more. */
void accounts_forget(struct account *account);
/* Is the environment one of those that a worker's token serves? A branch counts as preview,
 * preview itself has no runs. */
bool secret_serves(const struct secret *secret, const struct account *account);

/* What lists and audits show of a secret: the first digits of its hash. */
enum { SECRET_ID_LEN = 12 };
void secret_show_id(const struct secret *secret, char id[SECRET_ID_LEN + 1]);
/* The secret of that id among those of one owner; NULL: none. */
struct secret *secret_find(const struct list *of_owner, const char *id);

/* It is a worker's token, of a project or of all. */
bool secret_is_of_worker(const struct secret *secret);

/* Lets in a worker's token that serves all projects, their environments of development not
 * among them, for as long as this process lives. only: those of this organization; NULL: of
 * any. ERR_INVALID: no such token. */
enum err accounts_serve_all(struct accounts *accounts, struct slice token,
                            const struct organization *only);

/* Is the user in the organization, or another user of the same address? */
bool user_is_in(const struct user *user, const struct organization *organization);
/* Is it a project of the user's organizations? */
bool user_sees(const struct user *user, const struct project *project);

/* Valid now: neither revoked nor replaced longer ago than the grace period. */
bool secret_is_valid(const struct secret *secret, int64_t now_ms);

/* The environment whose keys open this one: the parent of a branch, else itself. */
struct account *account_of_keys(struct account *account);

/* Every environment in order of its number, archived branches too; NULL at the end. Start
 * with NULL. */
struct account *accounts_next(struct accounts *accounts, const struct account *previous);
/* The number for the next environment; 0: there are too many. */
uint32_t accounts_free_number(const struct accounts *accounts);
/* Numbers below this one were given away, also to environments that are forgotten. */
void accounts_note_number(struct accounts *accounts, uint32_t free_number);
/* NULL: the organization has none. */
struct user *accounts_first_user(struct accounts *accounts,
                                 const struct organization *organization);
/* By id, or by email or slug or ref, which are names of people. NULL: unknown. */
struct user *accounts_user(struct accounts *accounts, struct slice email_or_id);
struct organization *accounts_organization(struct accounts *accounts,
                                           struct slice slug_or_id);
/* The links are of the structs' member link, in the order they were made. */
const struct list *accounts_organizations(const struct accounts *accounts);
const struct list *accounts_projects(const struct accounts *accounts);
/* Those deleted, some of which may have left something in the store. */
const struct list *accounts_deleted_projects(const struct accounts *accounts);
const struct list *accounts_users(const struct accounts *accounts);

/* Counts what ends credentials and branches, now or later: when it has moved, or the time
 * of accounts_next_end has come, what is open must be looked at. */
uint64_t accounts_endings(const struct accounts *accounts);
/* The next moment after now at which a replaced key ends; 0: none. Unix ms. */
int64_t accounts_next_end(struct accounts *accounts, int64_t now_ms);
