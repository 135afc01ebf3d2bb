/* url.h - the URLs, written by operators, to which a client connects; pure functions.
 *
 *   https://gateway.example:8443/prefix
 *   scheme  host            port  prepended to every target
 *
 * It is strict: anything that two programs may read differently is rejected. The reason,
 * for an operator, does not repeat the URL, which may contain a password. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

enum { URL_HOST_MAX = 253, URL_PREFIX_MAX = 255 };

enum url_scheme { URL_HTTP, URL_HTTPS, URL_WS, URL_WSS };

struct url {
    enum url_scheme scheme;
    bool secure; /* https or wss */
    bool is_ip;
    bool is_ip6;
    uint16_t port;                   /* given, or the default of the scheme */
    char host[URL_HOST_MAX + 1];     /* in lower case, without brackets */
    char prefix[URL_PREFIX_MAX + 1]; /* "" or "/…", without a slash at the end */
};

/* Reads scheme, host name, IPv4 or [IPv6], port, path. ERR_INVALID: anything else, or a URL
 * with user information, a query or a fragment. */
enum err url_read(struct slice text, struct url *url, struct failure *why);

/* The same, but why also names the setting or variable (origin) and its value. A value that
 * contains a password is not shown. */
enum err url_read_named(const char *origin, const char *text, struct url *url,
                        struct failure *why);

/* Appends "host", "host:port" or "[::1]:port", without the default port of the scheme. For
 * the Host header and for texts. */
void url_add_authority(struct buf *out, const struct url *url);
