/* listening.h - the addresses of a gateway: whether it may listen on them, and their
 * URLs. */
#pragma once

#include "net/http/server.h"
#include "server/config/config_listen.h"

struct gateway_urls {
    char url[128];           /* for clients */
    char dashboard_url[128]; /* of the dashboard, for browsers; "": it is off */
    int port;                /* of url; 0: all listeners are UNIX sockets */
};

/* Rejects a public address with generated keys, unless --insecure: either all addresses are
 * local to this machine, or the operator must set the keys. */
enum err gateway_check_listen(const struct config *config, struct failure *why);

/* Writes the address as a URL for clients on this machine; unix:PATH for a UNIX socket. */
void gateway_write_url(const struct config_listener *listener, int port, char *url,
                       size_t size);

/* Warns about passed-in sockets without a listener, whose clients would never get a
 * response. */
void gateway_log_unused_sockets(const struct config_listener *listeners, size_t count);

/* Notes the URLs of a listening server. listeners[count] is the admin's. */
void gateway_note_urls(const struct config *config, const struct server *server,
                       const struct config_listener *listeners, size_t count,
                       struct gateway_urls *urls);
