/* proxy_header.h - the PROXY protocol, version 2, as a load balancer puts it before the
 * first byte of a connection (proxy-protocol.txt of HAProxy); pure.
 *
 *   12 bytes of signature, version and command, family, length ─► addresses ─► TLVs */
#pragma once

#include "net/address.h"

enum {
    PROXY_HEADER_FIXED = 16,
    PROXY_HEADER_MAX = 4096, /* with TLVs; more is refused */
};

enum proxy_status {
    PROXY_MORE, /* it goes on in bytes that have not come */
    PROXY_DONE,
    PROXY_BAD
};

struct proxy_header {
    bool names_client; /* false: LOCAL, as health checks are, or a family without address */
    struct address client;
    size_t len; /* bytes of the header */
};

/* How many bytes more are surely of the header, whose first bytes these are: all of them, once its
 * length is known. */
size_t proxy_header_missing(struct slice bytes);

/* Reads the bytes from the first of the connection on. The header is filled in with PROXY_DONE.
 * What TLVs say is not used; that they fit is checked. */
enum proxy_status proxy_header_read(struct slice bytes, struct proxy_header *header);
