/* connection_shares.c - computes the connection limits of environments and projects. */
#include "server/gateway/connection_shares.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/log.h"

enum { NUMBER_TEXT = 24 };

void connection_shares_set(const struct config *config, struct api_options *api)
{
    int64_t all = config->connections, given = config->realtime_connections;
    api->realtime_connections = given ? given : all - all / 4;
    api->project_connections = given ? 2 * given : all - all / 8;
}

void connection_shares_log(int64_t all, const struct api_options *api)
{
    char connections[NUMBER_TEXT], environment[NUMBER_TEXT], project[NUMBER_TEXT];
    snprintf(connections, sizeof(connections), "%" PRId64, all);
    snprintf(environment, sizeof(environment), "%" PRId64, api->realtime_connections);
    snprintf(project, sizeof(project), "%" PRId64, api->project_connections);
    log_info(api->project_connections < all
                 ? "limits of long-lived connections"
                 : "limits of long-lived connections: one project may take all connections",
             "connections", connections, "environment", environment, "project", project,
             NULL);
}
