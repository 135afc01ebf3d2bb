/* account_draft.h - drafts the document changes that create, alter or end accounts.
 *
 * One function per kind of change adds to the draft. account_writer.h commits it as a
 * whole. That of the first start is made by accounts_bootstrap and committed by load.h. */
#pragma once

#include "accounts/accounts.h"

enum {
    DRAFT_MAX = 128,
    ACCOUNT_NAME_MAX = 100, /* bytes of a display name, and of a slug */
    DRAFT_USES_MAX = 64,    /* last uses in one draft */
};

struct draft {
    const struct vault *vault;
    int64_t now_ms;
    struct change *changes; /* DRAFT_MAX elements, the caller's */
    size_t count;
};

/* Returns true for 1 to ACCOUNT_NAME_MAX bytes of UTF-8, at least one of them to be seen,
 * without control characters, and without characters that are invisible wherever they
 * are. */
bool account_name_is_right(struct slice name);

/* Turns "My Shop!" into "my-shop"; "x" if no letter or digit is left. */
void account_make_slug(struct slice name, char slug[ACCOUNT_NAME_MAX + 1]);

/* Draft an organization, or a project without environments.
 *
 * Names are not checked here. A random id is made and written to id. */
void draft_organization(struct draft *draft, struct slice name, struct slice slug,
                        char id[ID_MAX]);
void draft_project(struct draft *draft, const char *organization_id, const char *ref,
                   struct slice name, struct slice slug, char id[ID_MAX]);
/* Drafts a project with four environments: numbers from number on, and random keys.
 *
 * The slug is made from the name. The keys are written to keys. */
void draft_whole_project(struct draft *draft, const char *organization_id, const char *ref,
                         struct slice name, uint32_t number,
                         char keys[ENVIRONMENT_TYPES][SECRET_KEY_MAX]);

/* Rename or delete existing ones.
 *
 * A deleted organization must have no projects, and no users but those that the same draft
 * deletes. */
void draft_rename_organization(struct draft *draft, const struct organization *organization,
                               struct slice name);
void draft_rename_project(struct draft *draft, const struct project *project,
                          struct slice name);
void draft_rename_user(struct draft *draft, const struct user *user, struct slice name);
void draft_delete_user(struct draft *draft, const struct user *user);
void draft_delete_organization(struct draft *draft,
                               const struct organization *organization);

/* Marks the project as deleted.
 *
 * Its credentials end, and its stored data is removed in pieces. */
void draft_delete_project(struct draft *draft, const struct project *project);
/* Deletes documents of a deleted project whose environments were emptied.
 *
 * Deletes as many as fit into the draft: first those that refer to others, last the
 * project itself. Repeat it until the project is forgotten. */
void draft_forget_project(struct draft *draft, struct accounts *accounts,
                          const struct project *project);

/* Drafts one of the four environments of a project, with its key. */
void draft_environment(struct draft *draft, uint32_t number, const char *project_id,
                       enum environment_type type, const char *key);
void draft_branch(struct draft *draft, uint32_t number, const struct account *preview,
                  struct slice name, char id[ID_MAX]);
void draft_archive(struct draft *draft, const struct account *branch);
void draft_user(struct draft *draft, const char *organization_id, struct slice name,
                struct slice email, char id[ID_MAX]);
/* by: the token that makes it; NULL: none. ends_at: Unix ms; 0: valid until revoked. */
void draft_token(struct draft *draft, const char *user_id, const struct secret *by,
                 struct slice name, const char *token, int64_t ends_at);
/* A sign-in to the dashboard. by: the token that signed in; NULL: a one-time link. */
void draft_sign_in(struct draft *draft, const char *user_id, const struct secret *by,
                   const char *token, int64_t ends_at);
/* A lasting sign-in, by its id (lasting.h). sign_in makes it. by: as of a sign-in. */
void draft_lasting(struct draft *draft, const struct secret *sign_in,
                   const struct secret *by, const char *id, const struct lasting *lasting,
                   int64_t ends_at);
/* Gives an existing one another state and end. */
void draft_lasting_again(struct draft *draft, const struct secret *secret,
                         const struct lasting *lasting, int64_t ends_at);
/* A token that signs its reader in to the dashboard once, within five minutes. */
void draft_link(struct draft *draft, const char *user_id, const char *token);
/* serves: bits of enum environment_type; its workers take runs of these environments. */
void draft_worker_token(struct draft *draft, const char *project_id, unsigned serves,
                        struct slice name, const char *token);

/* Removes a secret that was revoked or whose grace period has ended. */
void draft_end(struct draft *draft, const struct secret *secret);
/* Removes keys and personal tokens that are not valid any more: as many as fit, and at most
 * 32, so that their documents and memory go with later changes. */
void draft_end_expired(struct draft *draft, const struct accounts *accounts);
/* Removes a personal token, and as many as fit of those that it has made, and these in
 * turn. The others end with it, too, but their documents stay for now. */
void draft_revoke_token(struct draft *draft, const struct secret *token);

/* Adds a new main key; the earlier main keys stay valid for at most grace_ms.
 *
 * If grace_ms is 0, they are removed at once. */
void draft_rotate(struct draft *draft, struct account *account, const char *key,
                  int64_t grace_ms);
/* Adds a key with a label. ends_at: Unix ms; 0: valid until revoked. */
void draft_key(struct draft *draft, const struct account *account, struct slice label,
               const char *key, int64_t ends_at);
/* Replaces a key with a label by one of the same label and lifetime.
 *
 * The key that it has replaced itself ends at once: one old value is valid at most. */
void draft_replace_key(struct draft *draft, const struct secret *secret, const char *key,
                       int64_t grace_ms);

/* Writes keys and tokens again whose last use is not stored yet: as many as fit, and at most
 * DRAFT_USES_MAX. Returns their count. */
size_t draft_uses(struct draft *draft, const struct accounts *accounts);
