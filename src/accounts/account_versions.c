/* account_versions.c - finds the version that memory has of a document. */
#include "accounts/account_versions.h"

#include "accounts/accounts_state.h"

/* Copies the name, cut off to ID_MAX - 1 bytes. */
static void copy_id(const struct document *document, char id[ID_MAX])
{
    snprintf(id, ID_MAX, "%.*s", SLICE_ARG(bytes_slice(document->name)));
}

static uint32_t organization_version(struct accounts *accounts,
                                     const struct document *document)
{
    const struct organization *found =
        accounts_organization(accounts, bytes_slice(document->name));
    return found ? found->version : 0;
}

static uint32_t project_version(struct accounts *accounts, const struct document *document)
{
    char id[ID_MAX];
    copy_id(document, id);
    const struct project *found = accounts_find_project(accounts, id);
    return found && !found->forgotten ? found->version : 0;
}

static uint32_t user_version(struct accounts *accounts, const struct document *document)
{
    const struct user *found = accounts_user(accounts, bytes_slice(document->name));
    return found ? found->version : 0;
}

static uint32_t environment_version(struct accounts *accounts,
                                    const struct document *document)
{
    const struct account *found = accounts_by_id(accounts, bytes_slice(document->name));
    return found && !found->forgotten ? found->version : 0;
}

/* The name of a key begins with the id of its environment. */
static uint32_t key_version(struct accounts *accounts, const struct document *document)
{
    struct slice name = bytes_slice(document->name), rest = name, id;
    const struct account *account =
        slice_split(&rest, ':', &id) ? accounts_by_id(accounts, id) : NULL;
    if (!account)
        return 0;
    list_each (link, &account->secrets) {
        const struct secret *secret = container_of(link, struct secret, of_owner);
        if (slice_is(name, secret->document))
            return secret->version;
    }
    return 0;
}

static uint32_t token_version(struct accounts *accounts, const struct document *document)
{
    char hash[2 * HASH_LEN + 1];
    snprintf(hash, sizeof(hash), "%.*s", SLICE_ARG(bytes_slice(document->name)));
    const struct secret *found = accounts_find_token(accounts, hash);
    return found && !found->serves_all ? found->version : 0;
}

/* Returns 0 if memory does not have the document. */
static uint32_t version_of(struct accounts *accounts, const struct document *document)
{
    switch (document->kind) {
    case DOC_ORGANIZATION: return organization_version(accounts, document);
    case DOC_PROJECT: return project_version(accounts, document);
    case DOC_USER: return user_version(accounts, document);
    case DOC_ENVIRONMENT: return environment_version(accounts, document);
    case DOC_KEY: return key_version(accounts, document);
    default: return token_version(accounts, document);
    }
}

bool accounts_have(struct accounts *accounts, const struct document *document)
{
    uint32_t version = version_of(accounts, document);
    return version && version == document->version;
}

/* ---- counting ---- */

static size_t length_of(const struct list *list)
{
    size_t count = 0;
    list_each (link, list)
        count++;
    return count;
}

static size_t count_projects(const struct list *projects)
{
    size_t count = 0;
    list_each (link, projects)
        count += !container_of(link, struct project, link)->forgotten;
    return count;
}

static size_t count_environments(const struct accounts *accounts)
{
    size_t count = 0;
    uint32_t at = 0;
    for (const struct account *one; (one = slots_next(&accounts->by_number, &at));)
        count += !one->forgotten;
    return count;
}

static size_t count_secrets(const struct accounts *accounts)
{
    size_t count = 0, at = 0;
    for (const struct secret *one; (one = table_next(&accounts->secrets, &at));)
        count += !one->serves_all;
    return count;
}

size_t accounts_document_count(struct accounts *accounts)
{
    return length_of(&accounts->organizations) + length_of(&accounts->users) +
           count_projects(&accounts->projects) + count_projects(&accounts->deleted) +
           count_environments(accounts) + count_secrets(accounts);
}
