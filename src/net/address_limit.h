/* address_limit.h - counts the connections of each address.
 *
 * An IPv6 /64 network counts as one address, because a host with one of its addresses has
 * all of them. */
#pragma once

#include "base/table.h"
#include "net/address.h"

struct address_limit {
    struct table counts;
};

struct address_slot {
    struct address_count *of; /* NULL: not counted */
};

void address_limit_init(struct address_limit *limit);
void address_limit_finish(struct address_limit *limit);

/* Counts a connection from the address, after releasing what the slot counted before.
 * Returns false if the address already has `most` connections and is not exempt. */
bool address_limit_enter(struct address_limit *limit, struct address_slot *place,
                         const struct address *address, unsigned most);

/* Stops counting the connection. Does nothing if the slot is not counted. */
void address_limit_leave(struct address_limit *limit, struct address_slot *place);

/* Exempts an address that speaks for others: it may have any number of connections. The
 * exemption lasts while it has any. Does nothing if the slot is not counted. */
void address_limit_exempt(struct address_slot *place);
