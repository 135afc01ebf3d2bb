/* listening.h - where a gateway listens: whether it may, and what it says of it. */
#pragma once

#include "net/http/server.h"
#include "server/config/config_listen.h"

struct gateway_urls {
    char url[128];           /* where clients find the gateway */
    char dashboard_url[128]; /* where browsers find the dashboard; "": it is off */
    int port;                /* of url; 0: all listeners are UNIX sockets */
};

/* Generated keys are fine on this machine; the world gets in with keys that somebody chose
 * to set, or after saying --insecure. */
enum err gateway_check_listen(const struct config *config, struct failure *why);

/* The address as a URL, for clients on this machine; unix:PATH of a UNIX socket. */
void gateway_write_url(const struct config_listener *listener, int port, char *url,
                       size_t size);

/* Who connects to a socket that nobody listens at is never answered. */
void gateway_tell_unused_sockets(const struct config_listener *listeners, size_t count);

/* The addresses of a server that listens. listeners[count] is that of the admin. */
void gateway_note_urls(const struct config *config, const struct server *server,
                       const struct config_listener *listeners, size_t count,
                       struct gateway_urls *urls);
