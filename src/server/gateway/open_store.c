/* open_store.c - opens the database of the settings; no other file names the drivers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "server/config/config_listen.h"
#include "server/gateway/command.h"
#include "store/pg/pg_reach.h"
#include "store/pg/pg_store.h"
#include "store/sqlite/sqlite_store.h"

char *gateway_path(const struct config *config, const char *name)
{
    struct buf path = { 0 };
    buf_print(&path, "%s/%s", config->data, name);
    char *text = mem_text(buf_slice(&path));
    buf_finish(&path);
    return text;
}

void gateway_name(const struct config *config, char name[GATEWAY_NAME_MAX])
{
    struct config_listener listeners[CONFIG_LISTENERS_MAX];
    struct failure ignored;
    char machine[64] = "";
    size_t count = 0;
    if (*config->gateway_name) {
        snprintf(name, GATEWAY_NAME_MAX, "%s", config->gateway_name);
        return;
    }
    gethostname(machine, sizeof(machine) - 1);
    if (config_listeners(config, listeners, &count, &ignored))
        count = 0;
    snprintf(name, GATEWAY_NAME_MAX, "%s:%d", machine, count ? (int)listeners[0].port : 0);
}

static enum err open_sqlite(const struct config *config, struct uv_loop_s *uv,
                            struct store **store, struct failure *why)
{
    char *path = gateway_path(config, "runcast.db");
    struct sqlite_options options = { .path = path };
    enum err refused = sqlite_store_open(uv, &options, store, why);
    free(path);
    return refused;
}

static enum err reach_of_postgres(const struct config *config,
                                  uint16_t servers[GATEWAY_SERVERS_MAX], size_t *count,
                                  void (*file)(void *owner, const char *path), void *owner,
                                  struct failure *why)
{
    struct pg_reach reach;
    _Static_assert((int)PG_PORTS_MAX <= (int)GATEWAY_SERVERS_MAX, "all of them fit");
    enum err refused = pg_reach_of(config->database, &reach, why);
    if (refused)
        return refused;
    *count = reach.port_count;
    memcpy(servers, reach.ports, sizeof(reach.ports));
    for (size_t i = 0; i < reach.file_count; i++)
        file(owner, reach.files[i]);
    pg_reach_finish(&reach);
    return OK;
}

static void warn_unverified(const struct config *config)
{
    struct failure ignored;
    struct pg_reach reach;
    if (pg_reach_of(config->database, &reach, &ignored))
        return;
    if (reach.unverified)
        log_warn("the connection to the database is not verified: anyone between the two "
                 "can read and change it; add sslmode=verify-full and sslrootcert=FILE to "
                 "the address",
                 NULL);
    pg_reach_finish(&reach);
}

static enum err open_postgres(const struct config *config,
                              const struct gateway_identity *identity, struct uv_loop_s *uv,
                              struct store **store, struct failure *why)
{
    struct pg_options options = { .database = config->database,
                                  .schema = config->database_schema,
                                  .name = identity->name,
                                  .peer_url = identity->peer_url,
                                  .vault = identity->vault,
                                  .durability = config->commit_durability,
                                  .writers = (int)config->database_writers,
                                  .readers = (int)config->database_readers,
                                  .lossless = !strcmp(config->failover, "lossless"),
                                  .stands_by = true };
    warn_unverified(config);
    return pg_store_open(uv, &options, store, why);
}

enum err gateway_check_database(const struct config *config, struct failure *why)
{
    struct pg_reach reach;
    if (!*config->database)
        return OK;
    enum err refused = pg_reach_of(config->database, &reach, why);
    if (!refused)
        pg_reach_finish(&reach);
    return refused;
}

enum err gateway_database_reach(const struct config *config,
                                uint16_t servers[GATEWAY_SERVERS_MAX], size_t *count,
                                void (*file)(void *owner, const char *path), void *owner,
                                struct failure *why)
{
    *count = 0;
    return *config->database ? reach_of_postgres(config, servers, count, file, owner, why)
                             : OK;
}

enum err gateway_open_store(const struct config *config,
                            const struct gateway_identity *identity, struct uv_loop_s *uv,
                            struct store **store, struct failure *why)
{
    return *config->database ? open_postgres(config, identity, uv, store, why)
                             : open_sqlite(config, uv, store, why);
}
