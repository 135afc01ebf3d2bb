/* address.h - IP addresses of peers, as proxies and the kernel write them; pure functions.
 *
 * An address is sixteen bytes. IPv4 is mapped into IPv6, so one rule serves both. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"

struct sockaddr;

enum { ADDRESS_TEXT = 48 };

struct address {
    bool is_ip;           /* false: a UNIX socket, and ip is zero */
    unsigned char ip[16]; /* network order */
};

struct address address_of_socket(const struct sockaddr *from);

/* From four bytes of IPv4, and sixteen of IPv6, in network order. */
struct address address_of_ip4(const unsigned char ip[4]);
struct address address_of_ip6(const unsigned char ip[16]);

/* Reads an address with or without a port: "192.0.2.1", "192.0.2.1:80", "2001:db8::1",
 * "[2001:db8::1]" or "[2001:db8::1]:80". Returns false for any other text. */
bool address_read(struct slice text, struct address *address);

/* Returns true if a Host header names an address, or localhost. A web page can make its own
 * name resolve to any address (DNS rebinding), but the browser then sends that name, never
 * an address. */
bool address_is_of_host(struct slice host);

/* Writes "192.0.2.1", "2001:db8::1" or "unix". */
void address_print(const struct address *address, char text[ADDRESS_TEXT]);

bool address_is_ip4(const struct address *address);
bool address_is_loopback(const struct address *address);

/* Ranges of addresses, each with a common prefix. has_unix: UNIX sockets, too. */
struct ranges {
    struct range *list;
    size_t count;
    bool has_unix;
};

/* Reads "10.0.0.0/8, 2001:db8::/32 192.0.2.1 unix", separated by commas or spaces. Returns
 * false and the invalid word; then there is nothing to finish. */
bool ranges_read(struct slice text, struct ranges *ranges, struct slice *wrong);
void ranges_finish(struct ranges *ranges);
bool ranges_hold(const struct ranges *ranges, const struct address *address);

/* Follows one X-Forwarded-For header from the right, while each address is trusted. A
 * trusted address vouches for the one before it. client is the sender of the header, and
 * becomes the farthest address vouched for. Returns false if no further header may be
 * followed. */
bool address_follow(struct slice forwarded_for, const struct ranges *trusted,
                    struct address *client);
