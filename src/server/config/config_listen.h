/* config_listen.h - addresses to listen on, from the settings that hold them. */
#pragma once

#include "net/http/server.h"
#include "os/process/service_manager.h"
#include "server/config/config.h"

enum { CONFIG_LISTENERS_MAX = 16, CONFIG_PATH_MAX = 108 };

struct config_listener {
    char host[64]; /* numeric; "": a UNIX socket */
    int port;
    char path[CONFIG_PATH_MAX]; /* of a UNIX socket */
    bool proxied;               /* by the PROXY protocol: ",proxy" behind the address */
    bool secure;                /* ",tls" */
    char handed[SERVICE_SOCKET_NAME_MAX]; /* of "systemd:NAME"; "": it is bound here */
    int fd; /* of that socket, since config_listener_find, which has its address, too */
};

/* The addresses of listen, in their order: "127.0.0.1:3030", "[::1]:3030",
 * "localhost:3030", ":3030" (every IPv4 address), "3030" (this machine only), "unix:PATH",
 * "systemd:NAME", a socket that the service manager hands over; each may end in ",proxy", ",tls" or both. */
enum err config_listeners(const struct config *config,
                          struct config_listener listeners[CONFIG_LISTENERS_MAX],
                          size_t *count, struct failure *why);

/* admin-listen, or metrics.sock in the data directory. */
enum err config_admin_listener(const struct config *config,
                               struct config_listener *listener, struct failure *why);

/* supervise-listen, or metrics.sock in the folder of the supervise role. */
enum err config_supervise_listener(const struct config *config, const char *folder,
                                   struct config_listener *listener, struct failure *why);

/* Finds the sockets that were handed over, and their addresses. ERR_INVALID: there is none of that
 * name. */
enum err config_listener_find(struct config_listener *listeners, size_t count,
                              struct failure *why);

/* The first two of the above are right, and no address is there twice. */
enum err config_check_listeners(const struct config *config, struct failure *why);

/* It as an address that servers listen on, which borrows it. A proxy of the same group may speak
 * to a UNIX socket; to the admin's only the owner. */
struct listen_options config_listener_address(const struct config_listener *listener,
                                              bool admin);

/* Nobody reaches it from another machine. */
bool config_listener_is_local(const struct config_listener *listener);
