/* account_versions.h - whether documents of the accounts in the database are those in memory.
 *
 * Memory has the version of each document. Equal versions mean equal documents within one
 * history, because each write makes the next version. */
#pragma once

#include "accounts/accounts.h"

/* Returns true if memory has this version of the document, which is of one of the kinds of
 * accounts_add. */
bool accounts_have(struct accounts *accounts, const struct document *document);

/* Returns how many documents memory has, without those that were removed. */
size_t accounts_document_count(struct accounts *accounts);
