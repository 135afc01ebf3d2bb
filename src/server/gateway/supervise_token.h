/* supervise_token.h - the credential of the supervise role beside a gateway: a file of the data
 * directory, which both read. */
#pragma once

#include "accounts/accounts.h"
#include "server/config/config.h"

/* Makes the file at the first start that executes, for its owner alone, and lets its token in:
 * it serves every environment but those of development. Unless it was said that several
 * organizations may share a machine, it serves the one that is there: one that is made later has
 * nobody here. ERR_INVALID with the reason: there are several already. */
enum err supervise_token_serve(const struct config *config, struct accounts *accounts,
                               struct failure *why);
