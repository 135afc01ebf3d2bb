/* reseal.h - what is sealed in a document, sealed again with the next key. */
#pragma once

#include "accounts/accounts.h"

/* The change that does it. ERR_CONFLICT: it is done already; ERR_NOT_FOUND: nothing in the
 * document is sealed; ERR_INVALID, with why: it does not open. */
enum err reseal(struct accounts *accounts, const struct document *document,
                struct change *change, struct failure *why);

/* It is written: memory knows the document's new version. */
void reseal_note(struct accounts *accounts, const struct document *before);
