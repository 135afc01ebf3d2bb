/* listening.c - checks addresses before any data is opened, and derives URLs from them. */
#include "server/gateway/listening.h"

#include <stdio.h>
#include <string.h>

#include "accounts/bootstrap.h"
#include "base/log.h"
#include "os/process/service_manager.h"
#include "server/config/config_tls.h"
#include "server/gateway/command.h"
#include "server/gateway/gateway.h"

enum err gateway_check_listen(const struct config *config, struct failure *why)
{
    struct config_listener listeners[CONFIG_LISTENERS_MAX];
    struct bootstrap given;
    size_t count, open = 0;
    enum err refused = config_listeners(config, listeners, &count, why);
    if (!refused && config_serves(config))
        refused = config_listener_find(listeners, count, why);
    while (!refused && open < count && config_listener_is_local(&listeners[open]))
        open++;
    if (refused || open == count || config->insecure)
        return refused;
    refused = bootstrap_prepare(&given, why);
    bool chosen = !refused && given.from_environment;
    bootstrap_finish(&given);
    if (refused)
        return refused;
    if (!chosen)
        return explain(
            why, ERR_INVALID,
            "%s is not a loopback address: generated keys are only for this machine; set "
            "RUNCAST_DEV_SECRET_KEY, RUNCAST_STAGING_SECRET_KEY, RUNCAST_PROD_SECRET_KEY "
            "and RUNCAST_PREVIEW_SECRET_KEY, or use --insecure",
            listeners[open].host);
    return OK;
}

enum err gateway_check(const struct config *config, struct failure *why)
{
    struct bootstrap given;
    enum err refused = bootstrap_prepare(&given, why);
    if (!refused)
        bootstrap_finish(&given);
    if (!refused)
        refused = gateway_check_listen(config, why);
    if (!refused)
        refused = gateway_check_database(config, why);
    return refused ? refused : config_try_certificates(config, why);
}

void gateway_write_url(const struct config_listener *listener, int port, char *url,
                       size_t size)
{
    const char *host = listener->host;
    bool six = strchr(host, ':') != NULL;
    if (!host[0]) {
        snprintf(url, size, "unix:%s", listener->path);
        return;
    }
    if (strcmp(host, "0.0.0.0") == 0)
        host = "127.0.0.1";
    else if (strcmp(host, "::") == 0)
        host = "::1";
    snprintf(url, size, "http%s://%s%s%s:%d", listener->secure ? "s" : "", six ? "[" : "",
             host, six ? "]" : "", port);
}

void gateway_log_unused_sockets(const struct config_listener *listeners, size_t count)
{
    unsigned used = 0;
    for (size_t i = 0; i < count; i++)
        used += listeners[i].handed[0] != '\0';
    if (service_socket_count() > used)
        log_warn("no setting uses a socket that the service manager passed: its "
                 "connections get no response",
                 "handed over", log_number(service_socket_count()), "named",
                 log_number(used), NULL);
}

static size_t length_without_slashes(const char *url)
{
    size_t len = strlen(url);
    while (len && url[len - 1] == '/')
        len--;
    return len;
}

/* Clients on this machine use the first address that does not expect a PROXY header. */
void gateway_note_urls(const struct config *config, const struct server *server,
                       const struct config_listener *listeners, size_t count,
                       struct gateway_urls *urls)
{
    const char *given = config->public_url;
    size_t first = 0;
    while (first < count - 1 && (!listeners[first].host[0] || listeners[first].proxied))
        first++;
    urls->port = server_port(server, first);
    if (given[0]) /* links append paths to it */
        snprintf(urls->url, sizeof(urls->url), "%.*s", (int)length_without_slashes(given),
                 given);
    else
        gateway_write_url(&listeners[first], urls->port, urls->url, sizeof(urls->url));
    if (!strcmp(config->dashboard, "admin"))
        gateway_write_url(&listeners[count], server_port(server, count),
                          urls->dashboard_url, sizeof(urls->dashboard_url));
    else if (!strcmp(config->dashboard, "on"))
        snprintf(urls->dashboard_url, sizeof(urls->dashboard_url), "%s", urls->url);
}
