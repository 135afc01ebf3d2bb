/* first_accounts.c - makes the first documents of an empty installation.
 *
 * One organization with one project, its four environments with their keys, and one user
 * with one token: enough to trigger a first run without configuring anything. */
#include "accounts/account_draft.h"

size_t accounts_bootstrap(struct accounts *accounts, const struct bootstrap *bootstrap,
                          int64_t now_ms, struct change changes[16])
{
    struct draft draft = { .vault = accounts_vault(accounts),
                           .now_ms = now_ms,
                           .changes = changes };
    char organization_id[ID_MAX], project_id[ID_MAX], user_id[ID_MAX];

    draft_organization(&draft, SLICE("My organization"), SLICE("my-organization"),
                       organization_id);
    draft_project(&draft, organization_id, bootstrap->project_ref, SLICE("My project"),
                  SLICE("my-project"), project_id);
    for (int i = 0; i < ENVIRONMENT_TYPES; i++)
        draft_environment(&draft, (uint32_t)i + 1, project_id, (enum environment_type)i,
                          bootstrap->secret_keys[i]);
    draft_user(&draft, organization_id, SLICE("Admin"), SLICE("admin@example.com"),
               user_id);
    draft_token(&draft, user_id, NULL, SLICE("first"), bootstrap->personal_token, 0);
    if (*bootstrap->link)
        draft_link(&draft, user_id, bootstrap->link);
    return draft.count;
}
