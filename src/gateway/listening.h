/* listening.h - where a gateway listens: whether it may, and what it says of it. */
#pragma once

#include "config/config_listen.h"

/* Generated keys are fine on this machine; the world gets in with keys that somebody chose
 * to set, or after saying --insecure. */
enum err gateway_check_listen(const struct config *config, struct failure *why);

/* The address as a URL, for clients on this machine; unix:PATH of a UNIX socket. */
void gateway_write_url(const struct config_listener *listener, int port, char *url,
                       size_t size);

/* Who connects to a socket that nobody listens at is never answered. */
void gateway_tell_unused_sockets(const struct config_listener *listeners, size_t count);
