/* command.h - opens what is in a data directory, for the gateway and for subcommands that
 * find none running. */
#pragma once

#include "config/config.h"
#include "runcast/store.h"
#include "vault/vault.h"

struct uv_loop_s;

/* The path of a file in the data directory; the caller's to free. */
char *gateway_path(const struct config *config, const char *name);

/* There is a database. */
enum err gateway_find_data(const struct config *config, struct failure *why);

/* And nobody else can replace it. */
enum err gateway_check_data(const struct config *config, struct failure *why);

enum err gateway_open_vault(const struct config *config, struct vault **vault,
                            struct failure *why);
enum err gateway_open_store(const struct config *config, struct uv_loop_s *loop,
                            struct store **store, struct failure *why);
