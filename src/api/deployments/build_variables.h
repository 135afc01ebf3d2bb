/* build_variables.h - a build's variables as the store has them: a sealed document.
 *
 *   {"NPM_TOKEN":"…"} ─► build_variables_seal ─► {"sealed":"…"} ─► build_variables_unseal
 *
 * In clear text they are a JSON object of strings. */
#pragma once

#include "base/bytes.h"
#include "base/error.h"
#include "base/slice.h"

struct vault;

/* Returns the body of the document, for the deployment with this id. */
struct bytes *build_variables_seal(const struct vault *vault, struct slice id,
                                   const struct bytes *variables);

/* Reads the body of the document. Returns ERR_INVALID with the reason if it is damaged, or
 * sealed with another key. */
enum err build_variables_unseal(struct vault *vault, struct slice id, struct slice body,
                                struct bytes **variables, struct failure *why);

/* Drops the reference, and wipes the variables if it was the last. *variables may be
 * NULL. */
void build_variables_forget(struct bytes **variables);
