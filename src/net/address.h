/* address.h - who is at the other end, as proxies and the kernel write it; pure.
 *
 * An address is sixteen bytes; IPv4 is mapped into IPv6, so one rule serves both. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"

struct sockaddr;

enum { ADDRESS_TEXT = 48 };

struct address {
    bool is_ip;           /* else a UNIX socket, and ip is zero */
    unsigned char ip[16]; /* network order */
};

struct address address_of_socket(const struct sockaddr *from);

/* IPv4 and IPv6 of four and sixteen bytes, network order. */
struct address address_of_ip4(const unsigned char ip[4]);
struct address address_of_ip6(const unsigned char ip[16]);

/* "192.0.2.1", "192.0.2.1:80", "2001:db8::1", "[2001:db8::1]" or "[2001:db8::1]:80". False:
 * none of them. */
bool address_read(struct slice text, struct address *address);

/* Whether a Host header names an address, or localhost. A web page may give its own name any
 * address (DNS rebinding): a browser then sends that name, never an address. */
bool address_is_of_host(struct slice host);

/* "192.0.2.1", "2001:db8::1" or "unix". */
void address_print(const struct address *address, char text[ADDRESS_TEXT]);

bool address_is_ip4(const struct address *address);
bool address_is_loopback(const struct address *address);

/* Addresses that share their first bits; and UNIX sockets, where the word unix is said. */
struct ranges {
    struct range *list;
    size_t count;
    bool has_unix;
};

/* "10.0.0.0/8, 2001:db8::/32 192.0.2.1 unix": separated by commas or spaces. False, with
 * the part that is none of these; then nothing is to be finished. */
bool ranges_read(struct slice text, struct ranges *ranges, struct slice *wrong);
void ranges_finish(struct ranges *ranges);
bool ranges_hold(const struct ranges *ranges, const struct address *address);

/* One X-Forwarded-For header, read from the right: each address that is trusted vouches for
 * the one before it. client is who sent the header, and becomes who is farthest behind it.
 * False: go no further back, also not in a header before this one. */
bool address_follow(struct slice forwarded_for, const struct ranges *trusted,
                    struct address *client);
