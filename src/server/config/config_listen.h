/* config_listen.h - the addresses to listen on, read from the settings. */
#pragma once

#include "net/http/server.h"
#include "os/process/service_manager.h"
#include "runcast/store.h"
#include "server/config/config.h"

enum { CONFIG_LISTENERS_MAX = 16, CONFIG_PATH_MAX = 108 };

struct config_listener {
    char host[64]; /* numeric; "": a UNIX socket */
    int port;
    char path[CONFIG_PATH_MAX]; /* of a UNIX socket */
    bool proxied;               /* has the suffix ",proxy": PROXY protocol */
    bool secure;                /* has the suffix ",tls" */
    char handed
        [SERVICE_SOCKET_NAME_MAX]; /* of "systemd:NAME"; "": the gateway binds it itself */
    int fd; /* of that socket; config_listener_find sets it and its address */
};

/* Reads the addresses of listen, in order: "127.0.0.1:3030", "[::1]:3030",
 * "localhost:3030", ":3030" (every IPv4 address), "3030" (this machine only), "unix:PATH",
 * or "systemd:NAME" (a socket passed by the service manager). Each may end in ",proxy",
 * ",tls" or both. */
enum err config_listeners(const struct config *config,
                          struct config_listener listeners[CONFIG_LISTENERS_MAX],
                          size_t *count, struct failure *why);

/* Reads admin-listen; default: metrics.sock in the data directory. */
enum err config_admin_listener(const struct config *config,
                               struct config_listener *listener, struct failure *why);

/* Reads peer-listen, an address with a port, optionally followed by ",tls"; host "": it is
 * not set. */
enum err config_peer_listener(const struct config *config, struct config_listener *listener,
                              struct failure *why);

/* Writes the URL at which other gateways connect to the listener of peer-listen, of at most
 * PEER_URL_MAX - 1 bytes; "" if
 * peer-listen is not set. */
void config_write_peer_url(const struct config *config,
                           const struct config_listener *listener, char url[PEER_URL_MAX]);

/* Reads supervise-listen; default: metrics.sock in the folder of the supervise role. */
enum err config_supervise_listener(const struct config *config, const char *folder,
                                   struct config_listener *listener, struct failure *why);

/* Finds sockets passed by the service manager, and their addresses. ERR_INVALID: none has
 * that name. */
enum err config_listener_find(struct config_listener *listeners, size_t count,
                              struct failure *why);

/* Checks listen, admin-listen, peer-listen and peer-url, and that no address is
 * repeated. */
enum err config_check_listeners(const struct config *config, struct failure *why);

/* Returns the listener as an address for a server; borrows it. A UNIX socket is open to its
 * group, for a proxy; the admin's only to its owner. */
struct listen_options config_listener_address(const struct config_listener *listener,
                                              bool admin);

/* Returns true if no other machine can reach the listener. */
bool config_listener_is_local(const struct config_listener *listener);

/* Returns true if the listener is not local, and its address is not that of a private
 * network either. */
bool config_listener_is_public(const struct config_listener *listener);
