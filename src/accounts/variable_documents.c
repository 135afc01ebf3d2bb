/* variable_documents.c - environment variables in the store: one sealed document each.
 *
 *   DOC_VARIABLE  <name>, in its environment  {secret, sealed}
 *   sealed for    variable:<project id>:<environment id>:<version>:<secret|open>:<name>
 *
 * A document therefore does not open if it was copied to another place, restored from an
 * older version, or its secret flag was changed in the database. */
#include "accounts/variables.h"

#include "base/json/json_tree.h"

#include <jansson.h>
#include <openssl/crypto.h>

bool variables_known(struct accounts *accounts, const struct project *project,
                     struct slice name)
{
    for (struct account *a = NULL; (a = accounts_next(accounts, a));)
        if (a->project == project && variables_own(a, name))
            return true;
    return false;
}

void variable_context(const struct account *account, struct slice name, uint32_t version,
                      bool is_secret, struct buf *out)
{
    buf_print(out, "variable:%s:%s:%u:%s:", account->project_id, account->id, version,
              is_secret ? "secret" : "open");
    buf_add(out, name);
}

static struct bytes *make_body(const struct vault *vault, const struct account *account,
                               struct slice name, struct slice value, uint32_t version,
                               bool is_secret)
{
    struct buf context = { 0 }, text = { 0 };
    variable_context(account, name, version, is_secret, &context);
    buf_print(&text, "{\"secret\":%s,\"sealed\":\"", is_secret ? "true" : "false");
    vault_seal(vault, buf_slice(&context), value, &text);
    buf_add_text(&text, "\"}");
    struct bytes *body = buf_to_bytes(&text);
    buf_finish(&context);
    buf_finish(&text);
    return body;
}

struct change variable_change(const struct vault *vault, const struct account *account,
                              struct slice name, struct slice value, bool is_secret)
{
    const struct variable *now = variables_own(account, name);
    uint32_t version = now ? now->version : 0;
    struct change change = { .kind = CHANGE_DOCUMENT,
                             .env = account->number,
                             .expected = version,
                             .document = { .kind = DOC_VARIABLE,
                                           .env = account->number,
                                           .name = bytes_create(name) } };
    if (value.ptr)
        change.document.body =
            make_body(vault, account, name, value, version + 1, is_secret);
    return change;
}

static enum err damaged(const struct document *document, struct failure *why)
{
    return explain(why, ERR_INVALID, "the document of variable \"%.*s\" is damaged",
                   SLICE_ARG(bytes_slice(document->name)));
}

static enum err variable_refuse_sealed(struct accounts *accounts,
                                       const struct account *account, struct slice name,
                                       struct slice sealed, struct failure *why)
{
    char what[128];
    snprintf(what, sizeof(what), "variable %.*s of environment %s",
             name.len < 60 ? (int)name.len : 60, name.ptr, account->id);
    return vault_explain(accounts_vault(accounts), sealed, what, why);
}

static enum err open_body(struct accounts *accounts, struct account *account,
                          const struct document *document, const json_t *body,
                          struct failure *why)
{
    struct slice name = bytes_slice(document->name);
    const json_t *secret = json_object_get(body, "secret");
    const char *sealed = json_string_value(json_object_get(body, "sealed"));
    struct buf context = { 0 }, value = { 0 };

    if (!json_is_boolean(secret) || !sealed || !variable_name_is_valid(name))
        return damaged(document, why);
    variable_context(account, name, document->version, json_is_true(secret), &context);
    enum err err = vault_unseal(accounts_vault(accounts), buf_slice(&context),
                                slice_of(sealed), &value);
    if (err)
        err = variable_refuse_sealed(accounts, account, name, slice_of(sealed), why);
    else
        variables_put(account, name, buf_slice(&value), json_is_true(secret),
                      document->version);
    OPENSSL_cleanse(value.ptr, value.len);
    buf_finish(&context);
    buf_finish(&value);
    return err;
}

enum err variables_restore(struct accounts *accounts, const struct document *document,
                           struct failure *why)
{
    struct account *account = accounts_by_number(accounts, document->env);
    struct slice text = bytes_slice(document->body);
    json_t *body = json_tree_read(text, 0, NULL);
    enum err err = account && body ? open_body(accounts, account, document, body, why)
                                   : damaged(document, why);
    json_decref(body);
    return err;
}
