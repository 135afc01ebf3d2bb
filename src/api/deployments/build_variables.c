/* build_variables.c - seals the variables of a build and unseals them. */
#include "api/deployments/build_variables.h"

#include "base/buf.h"
#include "base/json/scan.h"
#include "base/vault/secret.h"
#include "base/vault/vault.h"

struct bytes *build_variables_seal(const struct vault *vault, struct slice id,
                                   const struct bytes *variables)
{
    struct buf out = { 0 };
    buf_add_text(&out, "{\"sealed\":\"");
    vault_seal(vault, id, bytes_slice(variables), &out);
    buf_add_text(&out, "\"}");
    struct bytes *body = buf_to_bytes(&out);
    buf_finish(&out);
    return body;
}

static enum err damaged(struct failure *why)
{
    return explain(why, ERR_INVALID, "A deployment's document is damaged");
}

enum err build_variables_unseal(struct vault *vault, struct slice id, struct slice body,
                                struct bytes **variables, struct failure *why)
{
    struct buf sealed = { 0 }, plain = { 0 };
    enum err err = OK;
    if (!scan_is_json(body) || !scan_string(scan_member(body, "sealed"), &sealed))
        err = damaged(why);
    else if (vault_unseal(vault, id, buf_slice(&sealed), &plain))
        err = vault_explain(vault, buf_slice(&sealed), "the variables of a build", why);
    else if (!scan_is_json(buf_slice(&plain)))
        err = damaged(why);
    else
        *variables = buf_to_bytes(&plain);
    buf_finish(&sealed);
    secret_forget_buf(&plain);
    return err;
}

void build_variables_forget(struct bytes **variables)
{
    if (*variables && (*variables)->refs == 1)
        secret_wipe((*variables)->data, (*variables)->len);
    bytes_clear(variables);
}
