/* proxy_header.h - reads the header of the PROXY protocol, version 2.
 *
 * A load balancer sends it before the first byte of a connection (proxy-protocol.txt of
 * HAProxy). Pure functions.
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
    bool names_client; /* false: LOCAL (health checks), or a family without address */
    struct address client;
    size_t len; /* length of the header */
};

/* Returns how many more bytes certainly belong to the header that begins with these bytes.
 * That is all of them once its length is known. */
size_t proxy_header_missing(struct slice bytes);

/* Reads a header from the beginning of a connection; fills it in for PROXY_DONE. The
 * content of TLVs is not used, but they must fit. */
enum proxy_status proxy_header_read(struct slice bytes, struct proxy_header *header);
