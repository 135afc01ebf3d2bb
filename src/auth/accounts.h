/* accounts.h - who exists: organization, projects, environments with their keys, users
 * with their tokens.
 *
 *   organization ─► project "proj_…" ─► environment dev | staging | prod | preview ─► key
 *        └────────► user ─► personal access token
 *
 * Kept as documents, held in memory, looked up by SHA-256 of the secret. Secret keys are
 * sealed by the vault and stay readable (they sign public tokens); of personal access
 * tokens only the hash is kept. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "auth/bootstrap.h"
#include "auth/vault.h"
#include "base/list.h"
#include "base/text.h"
#include "runcast/store.h"

struct variables;

struct organization {
    char id[ID_MAX];
    char *name, *slug;
    struct list link; // accounts::organizations
};

struct project {
    char id[ID_MAX];
    char ref[PROJECT_REF_MAX];
    char *name, *slug;
    char organization_id[ID_MAX];
    struct organization *organization; /* since accounts_link */
    struct list link;                  // accounts::projects
};

struct user {
    char id[ID_MAX];
    char *name, *email;
    char organization_id[ID_MAX];
    struct organization *organization; /* since accounts_link */
    struct list link;                  // accounts::users
};

struct account {     /* one environment */
    uint32_t number; /* its environment number in the store; from 1 */
    char id[ID_MAX]; /* opaque: the sub of its tokens */
    enum environment_type type;
    char project_id[ID_MAX];
    struct project *project;     /* since accounts_link */
    const char *secret_key;      /* clear, in memory only; since accounts_link */
    struct variables *variables; /* of its own; NULL: none were ever set */
};

struct accounts;

struct accounts *accounts_create(struct vault *vault);
/* Wipes the keys. NULL is fine. */
void accounts_destroy(struct accounts *accounts);

/* Takes one document (of DOC_ORGANIZATION … DOC_TOKEN) into memory; order does not matter
 * before accounts_link. ERR_INVALID: a sealed key does not open (wrong encryption key), or
 * the document is damaged. */
enum err accounts_add(struct accounts *accounts, const struct document *document,
                      struct failure *why);

/* Resolves references once all are in; again after more were added. */
enum err accounts_link(struct accounts *accounts, struct failure *why);

bool accounts_empty(const struct accounts *accounts);

/* Borrowed: what the keys are sealed with. */
const struct vault *accounts_vault(const struct accounts *accounts);

/* The changes that make organization, project, user, four environments and the token; to be
 * committed by the caller, who also adds them with accounts_add. Returns the count; at most
 * 16. The texts are the caller's to finish. */
size_t accounts_bootstrap(struct accounts *accounts, const struct bootstrap *bootstrap,
                          int64_t now_ms, struct change changes[16]);

/* By secret, in constant time for equal hashes; NULL when unknown. */
struct account *accounts_by_secret_key(struct accounts *accounts, struct slice key);
struct user *accounts_by_personal_token(struct accounts *accounts, struct slice token);
struct account *accounts_by_id(struct accounts *accounts, struct slice id);
struct account *accounts_by_number(struct accounts *accounts, uint32_t number);
struct project *accounts_project(struct accounts *accounts, struct slice ref);
struct account *accounts_environment(struct accounts *accounts,
                                     const struct project *project,
                                     enum environment_type type);
/* Projects of the user's organization. */
bool user_sees(const struct user *user, const struct project *project);

/* Every environment in order of its number; NULL at the end. Start with NULL. */
struct account *accounts_next(struct accounts *accounts, const struct account *previous);
struct user *accounts_first_user(struct accounts *accounts);
