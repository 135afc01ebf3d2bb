/* reseal.c - opens a document's sealed value and seals it with the next key.
 *
 * Keys are sealed for the name of their document, variables for their place and version
 * (account_documents.c, variables.c), those of builds for their deployment. The rest of a
 * body is unchanged. */
#include "server/upkeep/reseal.h"

#include <jansson.h>

#include "accounts/variables.h"
#include "base/json/json_tree.h"
#include "base/vault/secret.h"

static void add_context(struct accounts *accounts, const struct document *document,
                        const json_t *body, uint32_t version, struct buf *out)
{
    struct slice name = bytes_slice(document->name);
    const struct account *account = accounts_by_number(accounts, document->env);
    if (document->kind == DOC_VARIABLE && account)
        variable_context(account, name, version,
                         json_is_true(json_object_get(body, "secret")), out);
    else
        buf_add(out, name);
}

static enum err unseal(struct accounts *accounts, const struct document *document,
                       const json_t *body, struct slice sealed, struct buf *plain,
                       struct failure *why)
{
    char what[128];
    struct buf context = { 0 };
    add_context(accounts, document, body, document->version, &context);
    enum err err =
        vault_unseal(accounts_vault(accounts), buf_slice(&context), sealed, plain);
    buf_finish(&context);
    if (!err)
        return OK;
    snprintf(what, sizeof(what), "document \"%.60s\"", document->name->data);
    return vault_explain(accounts_vault(accounts), sealed, what, why);
}

static struct bytes *seal(struct accounts *accounts, const struct document *document,
                          json_t *body, struct slice plain)
{
    struct buf context = { 0 }, sealed = { 0 }, text = { 0 };
    add_context(accounts, document, body, document->version + 1, &context);
    vault_seal_with_next(accounts_vault(accounts), buf_slice(&context), plain, &sealed);
    json_object_set_new(body, "sealed", json_stringn(sealed.ptr, sealed.len));
    buf_finish(&context);
    buf_finish(&sealed);

    json_tree_write(body, &text);
    return buf_take(&text);
}

static enum err reseal_body(struct accounts *accounts, const struct document *document,
                            json_t *body, struct change *change, struct failure *why)
{
    struct buf plain = { 0 };
    struct slice sealed = slice_of(json_string_value(json_object_get(body, "sealed")));
    if (!sealed.ptr)
        return ERR_NOT_FOUND;
    if (vault_is_sealed_with_next(accounts_vault(accounts), sealed))
        return ERR_CONFLICT;
    enum err err = unseal(accounts, document, body, sealed, &plain, why);
    if (!err)
        *change = (struct change){ .kind = CHANGE_DOCUMENT,
                                   .env = document->env,
                                   .expected = document->version,
                                   .document = { .kind = document->kind,
                                                 .env = document->env,
                                                 .name = bytes_ref(document->name),
                                                 .body = seal(accounts, document, body,
                                                              buf_slice(&plain)) } };
    secret_forget_buf(&plain);
    return err;
}

enum err reseal(struct accounts *accounts, const struct document *document,
                struct change *change, struct failure *why)
{
    struct slice text = bytes_slice(document->body);
    json_t *body = json_tree_read(text, 0, NULL);
    enum err err = body ? reseal_body(accounts, document, body, change, why)
                        : explain(why, ERR_INVALID, "document \"%.60s\" is damaged",
                                  document->name->data);
    json_decref(body);
    return err;
}

void reseal_note(struct accounts *accounts, const struct document *before)
{
    struct slice name = bytes_slice(before->name);
    struct account *account = accounts_by_number(accounts, before->env);
    if (before->kind == DOC_KEY)
        accounts_renew_key(accounts, before);
    else if (before->kind == DOC_VARIABLE && account)
        variables_renew(account, name, before->version + 1);
}
