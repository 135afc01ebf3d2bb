/* url.h - where a client connects to: the URLs that operators write; pure.
 *
 *   https://gateway.example:8443/prefix
 *   scheme  host            port  path in front of every target
 *
 * Strict: what two programs may read differently is refused, in words for an operator that
 * do not repeat the URL, since somebody may have written a password into it. */
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
    uint16_t port;                   /* said, or that of the scheme */
    char host[URL_HOST_MAX + 1];     /* in lower case, without brackets */
    char prefix[URL_PREFIX_MAX + 1]; /* "" or "/…", without a slash at its end */
};

/* Scheme, host name, IPv4 or [IPv6], port, path. ERR_INVALID: no such URL, or one with user
 * information, a query or a fragment. */
enum err url_read(struct slice text, struct url *url, struct failure *why);

/* "host", "host:port" or "[::1]:port", without the port that the scheme has anyway: for the
 * Host header, and for texts. */
void url_add_authority(struct buf *out, const struct url *url);
