/* variables.h - what the tasks of an environment find in process.env.
 *
 *   preview ─┬─► branch a      a branch sees its parent's variables; its own override them
 *            └─► branch b
 *
 * One document each, the value sealed for its place (project, environment, name, version,
 * secret or not); in memory in clear, in the order of their names. A secret one is
 * write-only: tasks get it, clients see "<redacted>". Who may ask is the caller's
 * business. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "accounts/accounts.h"
#include "base/buf.h"

enum {
    VARIABLE_NAME_MAX = 256,          /* bytes */
    VARIABLE_VALUE_MAX = 64 * 1024,   /* bytes */
    VARIABLES_MAX = 1000,             /* of one environment */
    VARIABLES_BYTES_MAX = 256 * 1024, /* of one environment: names and values */
    /* Limits of a project, over all of its environments. A preview branch often has a copy of all variables. */
    PROJECT_VARIABLES_MAX = 20 * VARIABLES_MAX,
    PROJECT_VARIABLES_BYTES_MAX = 20 * VARIABLES_BYTES_MAX,
};

struct variable {
    uint32_t version; /* of its document */
    bool is_secret;
    char *name;
    struct slice value; /* terminated */
};

/* Those of one environment. */
struct variables {
    struct variable **sorted; /* by name */
    size_t count;
    size_t bytes; /* of names and values */
};

/* NULL is fine. Wipes the values. */
void variables_destroy(struct variables *variables);

/* 1 to 256 letters, digits, "_", "." or "-", the first no "." or "-". */
bool variable_name_is_valid(struct slice name);

/* Says where a task belongs and is set by the service: never a user's. */
bool variable_name_is_reserved(struct slice name);

/* The variable that is set in this environment itself; NULL when it is not. */
const struct variable *variables_own(const struct account *account, struct slice name);

/* The variable that a task would find: the environment's own, or its parent's. */
const struct variable *variables_find(const struct account *account, struct slice name);

/* Everything a task would find, in the order of names. Start with { 0 }; NULL at the end.
 * Nothing is set meanwhile. */
struct variable_walk {
    size_t own, parents;
};
const struct variable *variables_next(const struct account *account,
                                      struct variable_walk *walk);

void variables_put(struct account *account, struct slice name, struct slice value,
                   bool is_secret, uint32_t version);
void variables_remove(struct account *account, struct slice name);

/* Forgets all variables of the environment; variables_restore puts back what the store has. */
void variables_clear(struct account *account);

/* The value stays, in a new version of its document. */
void variables_renew(struct account *account, struct slice name, uint32_t version);

/* ---- variable_documents.c ---- */

/* True when the name is set in some environment of the project. */
bool variables_known(struct accounts *accounts, const struct project *project,
                     struct slice name);

/* The change that sets the variable, or with an absent value deletes it; to be committed
 * by the caller, who then says variables_put or variables_remove. */
struct change variable_change(const struct vault *vault, const struct account *account,
                              struct slice name, struct slice value, bool is_secret);

/* Appends what a version of its document is sealed for. */
void variable_context(const struct account *account, struct slice name, uint32_t version,
                      bool is_secret, struct buf *out);

/* Restores one of DOC_VARIABLE; at start. ERR_INVALID: it does not open, or is damaged. */
enum err variables_restore(struct accounts *accounts, const struct document *document,
                           struct failure *why);
