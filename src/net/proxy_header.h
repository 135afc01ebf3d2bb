/* proxy_header.h - reads the header of the PROXY protocol, version 2.
 *
 * A load balancer sends it before the first byte of a connection (HAProxy's
 * proxy-protocol.txt). Pure functions.
 *
 *   12 bytes of signature, version and command, family, length ─► addresses ─► TLVs */
#pragma once

#include "net/address.h"

enum {
    PROXY_HEADER_FIXED = 16,
    PROXY_HEADER_MAX = 4096, /* including TLVs; longer ones are rejected */
};

enum proxy_status {
    PROXY_MORE, /* the header is not complete */
    PROXY_DONE,
    PROXY_BAD
};

struct proxy_header {
    bool names_client; /* false: LOCAL (health checks), or a family without addresses */
    struct address client;
    size_t len; /* length of the header */
};

/* Returns how many more bytes are sure to belong to the header that begins with these
 * bytes. Once its length is known, that is all of the rest. */
size_t proxy_header_missing(struct slice bytes);

/* Reads a header from the beginning of a connection; fills it in for PROXY_DONE. The
 * content of TLVs is not used, but they must fit. */
enum proxy_status proxy_header_read(struct slice bytes, struct proxy_header *header);
