/* bootstrap.h - kinds of environments, forms of their keys, and values for the first start.
 *
 *   tr_dev_  tr_stg_ (or tr_staging_)  tr_prod_  tr_preview_   20 and more of [0-9A-Za-z_]
 *   tr_pat_  tr_wgt_                                           20 and more of [0-9a-z]
 *   proj_                                                      8 to 40 of [0-9a-z]
 *
 * The first start is the one on an empty data directory. */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "base/slice.h"

enum environment_type {
    ENVIRONMENT_DEV,
    ENVIRONMENT_STAGING,
    ENVIRONMENT_PROD,
    ENVIRONMENT_PREVIEW
};

enum {
    ENVIRONMENT_TYPES = 4,
    ENVIRONMENTS_DEPLOYED = /* bits of the types that dev sessions do not serve */
    1 << ENVIRONMENT_STAGING | 1 << ENVIRONMENT_PROD | 1 << ENVIRONMENT_PREVIEW,
    PROJECT_REF_MAX = 46, /* with the terminating zero, like the others */
    SECRET_KEY_MAX = 64,
    PERSONAL_TOKEN_MAX = 64,
};

/* Slugs: in paths ("staging"), stored and shown ("stg"), and type names ("STAGING"). */
const char *environment_path_slug(enum environment_type type);
const char *environment_slug(enum environment_type type);
const char *environment_type_name(enum environment_type type);
/* Accepts both slugs of a type. Returns ERR_NOT_FOUND for an unknown one. */
enum err environment_type_from_slug(struct slice slug, enum environment_type *type);

/* Values for the first start, each from its environment variable or random. */
struct bootstrap {
    char project_ref[PROJECT_REF_MAX];
    char secret_keys[ENVIRONMENT_TYPES][SECRET_KEY_MAX]; /* by enum environment_type */
    char personal_token[PERSONAL_TOKEN_MAX];
    char link[PERSONAL_TOKEN_MAX]; /* token of a sign-in link; "": none is made */
    bool from_environment;         /* every secret key was given */
};

/* Reads and checks RUNCAST_PROJECT_REF, RUNCAST_DEV_SECRET_KEY, … or the files of …_FILE.
 *
 * Values that were not given are random. Returns ERR_INVALID with a reason that names the
 * variable and never contains a secret. */
enum err bootstrap_prepare(struct bootstrap *bootstrap, struct failure *why);

/* Each makes a new random value. */
void bootstrap_generate_key(enum environment_type type, char key[SECRET_KEY_MAX]);
void bootstrap_generate_token(char token[PERSONAL_TOKEN_MAX]);
void bootstrap_generate_worker_token(char token[PERSONAL_TOKEN_MAX]);
/* Prefix of the token of a one-time link, which no API call accepts as a credential. */
#define BOOTSTRAP_LINK_PREFIX "tr_link_"
void bootstrap_generate_link(char token[PERSONAL_TOKEN_MAX]);
void bootstrap_generate_ref(char ref[PROJECT_REF_MAX]);
bool bootstrap_ref_is_right(struct slice ref);

/* Wipes the secrets. */
void bootstrap_finish(struct bootstrap *bootstrap);

/* Returns true if bootstrap_prepare reads the variable. */
bool bootstrap_reads(struct slice variable);
