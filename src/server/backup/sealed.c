/* sealed.c - opens all sealed values: of accounts, variables and unfinished builds. */
#include "server/backup/sealed.h"

#include "accounts/accounts.h"
#include "accounts/variables.h"
#include "base/json/members.h"
#include "base/json/scan.h"
#include "base/mem.h"
#include "base/vault/secret.h"

enum { TOLD_MAX = 3 };

struct sealed {
    struct accounts *accounts;
    struct vault *vault;
    sqlite_found_fn *found;
    void *owner;
    unsigned troubles;
};

static void tell(struct sealed *sealed, const char *text)
{
    if (++sealed->troubles <= TOLD_MAX)
        sealed->found(sealed->owner, text);
}

/* ---- the id ---- */

static bool read_sealed(const struct document *document, struct buf *sealed)
{
    struct slice body = bytes_slice(document->body);
    return scan_is_json(body) && scan_string(scan_member(body, "sealed"), sealed);
}

static enum err take_id(void *owner, const struct document *document)
{
    struct buf sealed = { 0 };
    char *id = owner;
    if (!id[0] && read_sealed(document, &sealed))
        vault_sealed_id(buf_slice(&sealed), id);
    buf_finish(&sealed);
    return OK;
}

bool sealed_key_id(struct sqlite_look *look, char id[KEY_ID_TEXT_MAX])
{
    struct failure why;
    id[0] = '\0';
    sqlite_look_documents(look, DOC_KEY, take_id, id, &why);
    return id[0] != '\0';
}

/* ---- opening ---- */

static enum err take_account(void *owner, const struct document *document)
{
    struct sealed *sealed = owner;
    struct failure why;
    if (accounts_add(sealed->accounts, document, &why))
        tell(sealed, why.text);
    return OK;
}

static enum err take_variable(void *owner, const struct document *document)
{
    struct sealed *sealed = owner;
    struct failure why;
    if (variables_restore(sealed->accounts, document, &why))
        tell(sealed, why.text);
    return OK;
}

/* Opens the variables of a build that has not ended. */
static enum err take_build(void *owner, const struct document *document)
{
    struct sealed *sealed = owner;
    struct buf text = { 0 }, plain = { 0 };
    struct failure why;
    if (!read_sealed(document, &text))
        tell(sealed, "the variables of a build are damaged; cancel its deployment");
    else if (vault_unseal(sealed->vault, bytes_slice(document->name), buf_slice(&text),
                          &plain)) {
        vault_explain(sealed->vault, buf_slice(&text), "the variables of a build", &why);
        tell(sealed, why.text);
    }
    buf_finish(&text);
    secret_forget_buf(&plain);
    return OK;
}

static enum err open_all(struct sealed *sealed, struct sqlite_look *look,
                         struct failure *why)
{
    static const enum document_kind kinds[] = { DOC_ORGANIZATION, DOC_PROJECT, DOC_USER,
                                                DOC_ENVIRONMENT,  DOC_KEY,     DOC_TOKEN,
                                                DOC_WORKER_TOKEN };
    enum err err = OK;
    for (size_t i = 0; !err && i < sizeof(kinds) / sizeof(kinds[0]); i++)
        err = sqlite_look_documents(look, kinds[i], take_account, sealed, why);
    if (!err)
        err = sqlite_look_documents(look, DOC_BUILD_VARIABLES, take_build, sealed, why);
    if (err || sealed->troubles)
        return err; /* variables can be opened only if the accounts are complete */
    struct failure unlinked;
    if (accounts_link(sealed->accounts, &unlinked)) {
        tell(sealed, unlinked.text);
        return OK;
    }
    return sqlite_look_documents(look, DOC_VARIABLE, take_variable, sealed, why);
}

enum err sealed_check(struct sqlite_look *look, struct vault *vault, sqlite_found_fn *found,
                      void *owner, struct failure *why)
{
    struct sealed sealed = {
        .accounts = accounts_create(vault), .vault = vault, .found = found, .owner = owner
    };
    enum err err = open_all(&sealed, look, why);
    if (sealed.troubles > TOLD_MAX) {
        struct buf more = { 0 };
        buf_print(&more, "and %u others like these", sealed.troubles - TOLD_MAX);
        buf_add_char(&more, '\0');
        found(owner, more.ptr);
        buf_finish(&more);
    }
    accounts_destroy(sealed.accounts);
    return err;
}

static void note_first(void *owner, const char *text)
{
    struct failure *first = owner;
    if (!first->code)
        explain(first, ERR_INVALID, "%s", text);
}

enum err sealed_try(const char *database_path, const char *key, const char *key_path,
                    char id[KEY_ID_TEXT_MAX], struct failure *why)
{
    struct sqlite_look *look = NULL;
    struct vault *vault = NULL;
    struct failure first = { 0 };
    enum err err = sqlite_look_open(database_path, true, &look, why);
    if (!err)
        err = vault_open(slice_of(key), key_path, &vault, why);
    if (!err)
        err = sealed_check(look, vault, note_first, &first, why);
    if (!err && first.code) {
        *why = first;
        err = first.code;
    }
    if (!err && id)
        vault_opened_id(vault, id);
    vault_close(vault);
    sqlite_look_close(look);
    return err;
}
