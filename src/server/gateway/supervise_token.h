/* supervise_token.h - the supervise role's token, a file in the data directory.
 *
 * Both the gateway and the role read it. */
#pragma once

#include "accounts/accounts.h"
#include "server/config/config.h"

/* Creates the file, readable only by its owner, at the first start with execute, and
 * accepts its token for all environments except development ones. Without execute-tenants,
 * the token serves only the one organization that exists; runs of a later one are not
 * executed here. ERR_INVALID with the reason: there are already several. */
enum err supervise_token_serve(const struct config *config, struct accounts *accounts,
                               struct failure *why);
