/* supervise_token.h - the credential of the supervise role beside a gateway: a file of the data
 * directory, which both read. */
#pragma once

#include "accounts/accounts.h"
#include "gateway/config.h"

/* Makes the file at the first start that executes, for its owner alone, and lets its token in:
 * it serves every environment but those of development. ERR_INVALID with the reason: there
 * are several organizations, and nobody has said that they may share a machine. */
enum err supervise_token_serve(const struct config *config, struct accounts *accounts,
                               struct failure *why);
