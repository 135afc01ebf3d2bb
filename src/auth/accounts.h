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

#include "auth/vault.h"
#include "base/list.h"
#include "base/text.h"
#include "runcast/store.h"

enum environment_type { ENVIRONMENT_DEV, ENVIRONMENT_STAGING, ENVIRONMENT_PROD,
                        ENVIRONMENT_PREVIEW };

struct organization {
    char id[ID_MAX];
    char *name, *slug;
};

struct project {
    char id[ID_MAX];
    char ref[32]; /* "proj_" and 20 lower-case letters */
    char *name, *slug;
    struct organization *organization;
    struct list link; // accounts::projects
};

struct user {
    char id[ID_MAX];
    char *name, *email;
    struct organization *organization;
    struct list link; // accounts::users
};

struct account {      /* one environment */
    uint32_t number;  /* its environment number in the store; from 1 */
    char id[ID_MAX];  /* opaque: the sub of its tokens */
    enum environment_type type;
    struct project *project;
    char *secret_key; /* clear, in memory only */
    struct list link; // accounts::environments
};

struct accounts;

/* Slugs: in paths ("staging"), stored and shown ("stg"), and types ("STAGING"). */
const char *environment_path_slug(enum environment_type type);
const char *environment_slug(enum environment_type type);
const char *environment_type_name(enum environment_type type);
/* Accepts staging and stg. */
enum err environment_type_from_slug(struct slice slug, enum environment_type *type);

struct accounts *accounts_create(struct vault *vault);
void accounts_destroy(struct accounts *accounts);

/* Takes one document (of DOC_ORGANIZATION … DOC_TOKEN) into memory; order does not matter
 * before accounts_link. ERR_INVALID: a sealed key does not open (wrong encryption key). */
enum err accounts_add(struct accounts *accounts, const struct document *document,
                      struct failure *why);

/* Resolves references once all are in. */
enum err accounts_link(struct accounts *accounts, struct failure *why);

bool accounts_empty(const struct accounts *accounts);

/* What the first start makes, each value from its environment variable or drawn. */
struct bootstrap {
    char project_ref[32];
    char secret_keys[4][64]; /* by enum environment_type */
    char personal_token[64];
    bool from_environment;   /* every key was given */
};

/* Reads RUNCAST_PROJECT_REF, RUNCAST_DEV_SECRET_KEY, …, checks their form, draws the rest. */
enum err bootstrap_prepare(struct bootstrap *bootstrap, struct failure *why);

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
struct account *accounts_environment(struct accounts *accounts, const struct project *project,
                                     enum environment_type type);
/* Projects of the user's organization. */
bool user_sees(const struct user *user, const struct project *project);

/* Every environment in order of its number; NULL at the end. Start with NULL. */
struct account *accounts_next(struct accounts *accounts, const struct account *previous);
struct user *accounts_first_user(struct accounts *accounts);
