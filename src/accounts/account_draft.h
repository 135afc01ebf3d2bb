/* account_draft.h - the changes of documents that make, alter or end accounts.
 *
 * A draft is filled by one function per kind of thing and committed as a whole by
 * account_writer.h, or at the first start by gateway_load. */
#pragma once

#include "accounts/accounts.h"

enum {
    DRAFT_MAX = 128,
    ACCOUNT_NAME_MAX = 100, /* bytes of a name for people, and of a slug */
};

struct draft {
    const struct vault *vault;
    int64_t now_ms;
    struct change *changes; /* room for DRAFT_MAX */
    size_t count;
};

/* 1 to ACCOUNT_NAME_MAX bytes of UTF-8 without control characters, those of direction too. */
bool account_name_is_right(struct slice name);

/* "My Shop!" becomes my-shop. */
void account_make_slug(struct slice name, char slug[ACCOUNT_NAME_MAX + 1]);

/* Names are taken as they are; ids are drawn and written to id. */
void draft_organization(struct draft *draft, struct slice name, struct slice slug,
                        char id[ID_MAX]);
void draft_project(struct draft *draft, const char *organization_id, const char *ref,
                   struct slice name, struct slice slug, char id[ID_MAX]);
/* The same with its four environments, whose numbers begin with this one, and keys that are
 * drawn; its slug is that of the name. */
void draft_whole_project(struct draft *draft, const char *organization_id, const char *ref,
                         struct slice name, uint32_t number,
                         char keys[ENVIRONMENT_TYPES][SECRET_KEY_MAX]);

/* Another name for what is there; then the end of a user, and of an organization that has no
 * projects and users. */
void draft_rename_organization(struct draft *draft, const struct organization *organization,
                               struct slice name);
void draft_rename_project(struct draft *draft, const struct project *project,
                          struct slice name);
void draft_rename_user(struct draft *draft, const struct user *user, struct slice name);
void draft_delete_user(struct draft *draft, const struct user *user);
void draft_delete_organization(struct draft *draft,
                               const struct organization *organization);

/* Marks the project as deleted: its credentials end, and what it has stored is removed in
 * pieces. */
void draft_delete_project(struct draft *draft, const struct project *project);
/* Removes documents of a project that is deleted, and whose environments are emptied: as many
 * as there is room for, those that name others first, the project itself at last. */
void draft_forget_project(struct draft *draft, struct accounts *accounts,
                          const struct project *project);

/* One of the four environments of a project, with its key. */
void draft_environment(struct draft *draft, uint32_t number, const char *project_id,
                       enum environment_type type, const char *key);
void draft_branch(struct draft *draft, uint32_t number, const struct account *preview,
                  struct slice name, char id[ID_MAX]);
void draft_archive(struct draft *draft, const struct account *branch);
void draft_user(struct draft *draft, const char *organization_id, struct slice name,
                struct slice email, char id[ID_MAX]);
/* ends_at: Unix ms; 0: it is valid until it is revoked. */
void draft_token(struct draft *draft, const char *user_id, struct slice name,
                 const char *token, int64_t ends_at);
/* serves: bits of the environment types that its workers take runs of. */
void draft_worker_token(struct draft *draft, const char *project_id, unsigned serves,
                        struct slice name, const char *token);

/* Removes a secret that was revoked, or whose grace period is over. */
void draft_end(struct draft *draft, const struct secret *secret);

/* A new key; those before stay valid for grace_ms at most, and are gone at once when that is
 * 0. */
void draft_rotate(struct draft *draft, struct account *account, const char *key,
                  int64_t grace_ms);
