/* variables.h - environment variables of the tasks of an environment (process.env).
 *
 *   preview ─┬─► branch a      a branch sees its parent's variables; its own override them
 *            └─► branch b
 *
 * Each variable is one document. Its value is sealed for its place: project, environment,
 * name, version, and secret or not. In memory values are clear, sorted by name. A secret
 * variable is write-only: tasks get it, clients see "<redacted>". The caller checks
 * permissions. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "accounts/accounts.h"
#include "base/buf.h"

enum {
    VARIABLE_NAME_MAX = 256,          /* bytes */
    VARIABLE_VALUE_MAX = 64 * 1024,   /* bytes */
    VARIABLES_MAX = 1000,             /* per environment */
    VARIABLES_BYTES_MAX = 256 * 1024, /* per environment: names and values */
    /* Limits of a project, over all of its environments.
     *
     * A preview branch often has a copy of all variables. */
    PROJECT_VARIABLES_MAX = 20 * VARIABLES_MAX,
    PROJECT_VARIABLES_BYTES_MAX = 20 * VARIABLES_BYTES_MAX,
};

struct variable {
    uint32_t version; /* of its document */
    bool is_secret;
    char *name;
    struct slice value; /* zero-terminated */
};

/* The variables of one environment. */
struct variables {
    struct variable **sorted; /* by name */
    size_t count;
    size_t bytes; /* of names and values */
};

/* Wipes the values. Ignores NULL. */
void variables_destroy(struct variables *variables);

/* Returns true for 1 to 256 letters, digits, "_", "." or "-".
 *
 * The first one must not be "." or "-". */
bool variable_name_is_valid(struct slice name);

/* Returns true if the service sets the variable itself, so that users cannot. */
bool variable_name_is_reserved(struct slice name);

/* Finds a variable of the environment itself. Returns NULL if it is not set there. */
const struct variable *variables_own(const struct account *account, struct slice name);

/* Finds the variable that a task would get: the environment's own, or else its parent's. */
const struct variable *variables_find(const struct account *account, struct slice name);

/* Iterates over all variables that a task would get, sorted by name.
 *
 * Start with { 0 }; returns NULL at the end. Change no variable meanwhile. */
struct variable_walk {
    size_t own, parents;
};
const struct variable *variables_next(const struct account *account,
                                      struct variable_walk *walk);

void variables_put(struct account *account, struct slice name, struct slice value,
                   bool is_secret, uint32_t version);
void variables_remove(struct account *account, struct slice name);

/* Drops all variables of the environment.
 *
 * variables_restore reads them again from the store. */
void variables_clear(struct account *account);

/* Notes that the document has a new version with the same value. */
void variables_renew(struct account *account, struct slice name, uint32_t version);

/* ---- variable_documents.c ---- */

/* Returns true if any environment of the project has the variable. */
bool variables_known(struct accounts *accounts, const struct project *project,
                     struct slice name);

/* Makes the change that sets the variable or, if value is absent, deletes it.
 *
 * The caller commits it and then calls variables_put or variables_remove. */
struct change variable_change(const struct vault *vault, const struct account *account,
                              struct slice name, struct slice value, bool is_secret);

/* Appends the context that this version of the document is sealed for. */
void variable_context(const struct account *account, struct slice name, uint32_t version,
                      bool is_secret, struct buf *out);

/* Restores one DOC_VARIABLE at the start. Returns ERR_INVALID if it is damaged or does not
 * open. */
enum err variables_restore(struct accounts *accounts, const struct document *document,
                           struct failure *why);
