/* command.h - opens a data directory, for the gateway, or for a subcommand if none is
 * running. */
#pragma once

#include <stdint.h>

#include "base/vault/vault.h"
#include "runcast/store.h"
#include "server/config/config.h"

struct uv_loop_s;

enum { GATEWAY_NAME_MAX = 96 };

/* Writes this gateway's name among those with the same database: gateway-name, or the
 * machine's name and the port of the first listening address. */
void gateway_name(const struct config *config, char name[GATEWAY_NAME_MAX]);

/* Returns the path of a file in the data directory; the caller frees it. */
char *gateway_path(const struct config *config, const char *name);

/* Checks that there is a database. */
enum err gateway_find_data(const struct config *config, struct failure *why);

/* The same, and checks that no other user can replace it. */
enum err gateway_check_data(const struct config *config, struct failure *why);

/* Checks that the database is the SQLite file in the data directory; others are backed up
 * and checked with their own tools. */
enum err gateway_check_is_file(const struct config *config, struct failure *why);

enum err gateway_open_vault(const struct config *config, struct vault **vault,
                            struct failure *why);

/* How a gateway identifies itself to others with the same PostgreSQL database. */
struct gateway_identity {
    const struct vault *vault; /* they see which keys it opens */
    const char *name;          /* of this gateway, see gateway_name */
    const char *peer_url;      /* where others connect to it; "": it serves no peers */
};

/* Opens the configured database: the SQLite file in the data directory, or PostgreSQL.
 *
 * The vault and the texts of identity are borrowed until the store is closed. SQLite ignores them. */
enum err gateway_open_store(const struct config *config,
                            const struct gateway_identity *identity, struct uv_loop_s *loop,
                            struct store **store, struct failure *why);

/* Rejects an invalid address, or that of a database whose driver is not built in. */
enum err gateway_check_database(const struct config *config, struct failure *why);

enum { GATEWAY_SERVERS_MAX = 16 };

/* Lists the ports of a remote database's servers, and the files that its address names.
 *
 * Calls file with each path. Lists nothing for SQLite. */
enum err gateway_database_reach(const struct config *config,
                                uint16_t servers[GATEWAY_SERVERS_MAX], size_t *count,
                                void (*file)(void *owner, const char *path), void *owner,
                                struct failure *why);
