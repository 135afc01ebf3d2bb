/* bootstrap.c - names of environments, and given or random keys for the first start. */
#include "accounts/bootstrap.h"

#include <openssl/crypto.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/vault/secret.h"
#include "base/vault/secret_file.h"
#include "base/vault/vault.h"

#define DIGITS "0123456789"
#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define UPPER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

enum { GENERATED_KEY_LEN = 24, GENERATED_TOKEN_LEN = 40, GENERATED_REF_LEN = 20 };

/* clang-format off */
static const struct {
    const char *path_slug, *slug, *type, *variable;
    const char *prefix, *other_prefix;
} environments[ENVIRONMENT_TYPES] = {
    [ENVIRONMENT_DEV] =
        { "dev", "dev", "DEVELOPMENT", "RUNCAST_DEV_SECRET_KEY", "tr_dev_", NULL },
    [ENVIRONMENT_STAGING] =
        { "staging", "stg", "STAGING", "RUNCAST_STAGING_SECRET_KEY", "tr_stg_", "tr_staging_" },
    [ENVIRONMENT_PROD] =
        { "prod", "prod", "PRODUCTION", "RUNCAST_PROD_SECRET_KEY", "tr_prod_", NULL },
    [ENVIRONMENT_PREVIEW] =
        { "preview", "preview", "PREVIEW", "RUNCAST_PREVIEW_SECRET_KEY", "tr_preview_", NULL },
};
/* clang-format on */

static const char ref_variable[] = "RUNCAST_PROJECT_REF";
static const char token_variable[] = "RUNCAST_PERSONAL_ACCESS_TOKEN";

const char *environment_path_slug(enum environment_type type)
{
    return environments[type].path_slug;
}

const char *environment_slug(enum environment_type type)
{
    return environments[type].slug;
}

const char *environment_type_name(enum environment_type type)
{
    return environments[type].type;
}

enum err environment_type_from_slug(struct slice slug, enum environment_type *type)
{
    for (int i = 0; i < ENVIRONMENT_TYPES; i++) {
        if (slice_is(slug, environments[i].path_slug) ||
            slice_is(slug, environments[i].slug)) {
            *type = (enum environment_type)i;
            return OK;
        }
    }
    return ERR_NOT_FOUND;
}

/* ---- given values ---- */

/* The form of a value: a prefix, then at least min characters of an alphabet. */
struct secret_form {
    const char *prefix, *other_prefix, *alphabet;
    size_t min;
};

static const struct secret_form ref_form = { "proj_", NULL, DIGITS LOWER, 8 };

static bool matches_after(struct slice value, const char *prefix,
                          const struct secret_form *form)
{
    if (!prefix || !slice_starts(value, prefix))
        return false;
    struct slice rest = slice_from(value, strlen(prefix));
    for (size_t i = 0; i < rest.len; i++) {
        if (!rest.ptr[i] || !strchr(form->alphabet, rest.ptr[i]))
            return false;
    }
    return rest.len >= form->min;
}

/* Reads the variable NAME, or the file that NAME_FILE names.
 *
 * Sets *value to NULL if neither is set; an empty variable counts as not set. Pass *value
 * to secret_forget. */
static enum err read_variable(const char *name, char **value, struct failure *why)
{
    char file_name[64];
    snprintf(file_name, sizeof(file_name), "%s_FILE", name);
    const char *direct = getenv(name), *path = getenv(file_name);
    bool has_direct = direct && *direct, has_path = path && *path;

    *value = NULL;
    if (has_direct && has_path)
        return explain(why, ERR_INVALID, "%s and %s are both set; keep only one", name,
                       file_name);
    if (has_path)
        return secret_file_read(path, SECRET_FILE_MOUNTED, value, why);
    if (has_direct)
        *value = mem_text(slice_of(direct));
    return OK;
}

/* Copies a given value if it has the right form. Leaves out empty if none was given. */
static enum err take_given(const char *name, const struct secret_form *form, char *out,
                           size_t size, struct failure *why)
{
    char *value;
    enum err err = read_variable(name, &value, why);
    if (err || !value)
        return err;

    struct slice text = slice_of(value);
    bool right = text.len < size && (matches_after(text, form->prefix, form) ||
                                     matches_after(text, form->other_prefix, form));
    if (right)
        memcpy(out, value, text.len + 1);
    else
        err =
            explain(why, ERR_INVALID,
                    "%s: must be %s and at least %zu of the characters %s (max %zu in all)",
                    name, form->prefix, form->min, form->alphabet, size - 1);
    secret_forget(value);
    return err;
}

/* ---- the first start ---- */

static void generate(const char *prefix, size_t len, const char *alphabet, char *out)
{
    size_t prefix_len = strlen(prefix);
    memcpy(out, prefix, prefix_len);
    text_random(out + prefix_len, len, alphabet);
    out[prefix_len + len] = '\0';
}

void bootstrap_generate_key(enum environment_type type, char key[SECRET_KEY_MAX])
{
    generate(environments[type].prefix, GENERATED_KEY_LEN, DIGITS LOWER UPPER, key);
}

static const char token_alphabet[] = "123456789abcdefghijkmnopqrstuvwxyz";

void bootstrap_generate_token(char token[PERSONAL_TOKEN_MAX])
{
    generate("tr_pat_", GENERATED_TOKEN_LEN, token_alphabet, token);
}

void bootstrap_generate_worker_token(char token[PERSONAL_TOKEN_MAX])
{
    generate("tr_wgt_", GENERATED_TOKEN_LEN, token_alphabet, token);
}

void bootstrap_generate_link(char token[PERSONAL_TOKEN_MAX])
{
    generate(BOOTSTRAP_LINK_PREFIX, GENERATED_TOKEN_LEN, token_alphabet, token);
}

void bootstrap_generate_ref(char ref[PROJECT_REF_MAX])
{
    generate("proj_", GENERATED_REF_LEN, LOWER, ref);
}

bool bootstrap_ref_is_right(struct slice ref)
{
    return ref.len < PROJECT_REF_MAX && matches_after(ref, ref_form.prefix, &ref_form);
}

static enum err prepare_keys(struct bootstrap *bootstrap, struct failure *why)
{
    bootstrap->from_environment = true;
    for (int i = 0; i < ENVIRONMENT_TYPES; i++) {
        char *key = bootstrap->secret_keys[i];
        struct secret_form form = { environments[i].prefix, environments[i].other_prefix,
                                    DIGITS LOWER UPPER "_", 20 };
        enum err err =
            take_given(environments[i].variable, &form, key, SECRET_KEY_MAX, why);
        if (err)
            return err;
        if (!*key) {
            bootstrap->from_environment = false;
            bootstrap_generate_key((enum environment_type)i, key);
        }
    }
    return OK;
}

enum err bootstrap_prepare(struct bootstrap *bootstrap, struct failure *why)
{
    static const struct secret_form token_form = { "tr_pat_", NULL, DIGITS LOWER, 20 };
    struct bootstrap made = { 0 };

    enum err err = prepare_keys(&made, why);
    if (!err)
        err = take_given(ref_variable, &ref_form, made.project_ref, PROJECT_REF_MAX, why);
    if (!err)
        err = take_given(token_variable, &token_form, made.personal_token,
                         PERSONAL_TOKEN_MAX, why);
    if (!err && !*made.project_ref)
        bootstrap_generate_ref(made.project_ref);
    if (!err && !*made.personal_token)
        bootstrap_generate_token(made.personal_token);
    if (!err)
        *bootstrap = made;
    bootstrap_finish(&made);
    return err;
}

void bootstrap_finish(struct bootstrap *bootstrap)
{
    OPENSSL_cleanse(bootstrap, sizeof(*bootstrap));
}

bool bootstrap_reads(struct slice variable)
{
    if (variable.len > 5 && slice_is(slice_from(variable, variable.len - 5), "_FILE"))
        variable.len -= 5;
    for (int i = 0; i < ENVIRONMENT_TYPES; i++) {
        if (slice_is(variable, environments[i].variable))
            return true;
    }
    return slice_is(variable, ref_variable) || slice_is(variable, token_variable);
}
