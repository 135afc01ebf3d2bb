/* reseal.h - reseals the value in a document with the next key. */
#pragma once

#include "accounts/accounts.h"

/* Makes the change that reseals the document. ERR_CONFLICT: it is already sealed with the
 * next key; ERR_NOT_FOUND: nothing in it is sealed; ERR_INVALID, with why: it does not
 * open. */
enum err reseal(struct accounts *accounts, const struct document *document,
                struct change *change, struct failure *why);

/* The change was written: updates the document's version in memory. */
void reseal_note(struct accounts *accounts, const struct document *before);
