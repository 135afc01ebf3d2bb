/* bootstrap.h - the kinds of environments, the form of their keys, and what the first start
 * on an empty data directory makes.
 *
 *   tr_dev_  tr_stg_ (or tr_staging_)  tr_prod_  tr_preview_   20 and more of [0-9A-Za-z_]
 *   tr_pat_  tr_wgt_                                           20 and more of [0-9a-z]
 *   proj_                                                      8 to 40 of [0-9a-z] */
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
    ENVIRONMENTS_DEPLOYED = /* bits of the types that no session of a developer serves */
    1 << ENVIRONMENT_STAGING | 1 << ENVIRONMENT_PROD | 1 << ENVIRONMENT_PREVIEW,
    PROJECT_REF_MAX = 46, /* with the terminating zero, as below */
    SECRET_KEY_MAX = 64,
    PERSONAL_TOKEN_MAX = 64,
};

/* Slugs: in paths ("staging"), stored and shown ("stg"), and types ("STAGING"). */
const char *environment_path_slug(enum environment_type type);
const char *environment_slug(enum environment_type type);
const char *environment_type_name(enum environment_type type);
/* Accepts staging and stg. ERR_NOT_FOUND for anything unknown. */
enum err environment_type_from_slug(struct slice slug, enum environment_type *type);

/* What the first start makes, each value from its environment variable or drawn. */
struct bootstrap {
    char project_ref[PROJECT_REF_MAX];
    char secret_keys[ENVIRONMENT_TYPES][SECRET_KEY_MAX]; /* by enum environment_type */
    char personal_token[PERSONAL_TOKEN_MAX];
    bool from_environment; /* every secret key was given */
};

/* Reads RUNCAST_PROJECT_REF, RUNCAST_DEV_SECRET_KEY, …, each also as …_FILE, checks their
 * form, draws the rest. ERR_INVALID names the variable and never shows a secret. */
enum err bootstrap_prepare(struct bootstrap *bootstrap, struct failure *why);

/* New ones, drawn. */
void bootstrap_draw_key(enum environment_type type, char key[SECRET_KEY_MAX]);
void bootstrap_draw_token(char token[PERSONAL_TOKEN_MAX]);
void bootstrap_draw_worker_token(char token[PERSONAL_TOKEN_MAX]);
/* Of a one-time link: a token that no call takes as a credential. */
#define BOOTSTRAP_LINK_PREFIX "tr_link_"
void bootstrap_draw_link(char token[PERSONAL_TOKEN_MAX]);
void bootstrap_draw_ref(char ref[PROJECT_REF_MAX]);
bool bootstrap_ref_is_right(struct slice ref);

/* Wipes the secrets. */
void bootstrap_finish(struct bootstrap *bootstrap);

/* One of the variables that bootstrap_prepare reads. */
bool bootstrap_reads(struct slice variable);
