/* crowd.h - counts the connections of each address.
 *
 * An IPv6 network of 64 bits counts as one address, because a host with one address of it
 * has all of them. */
#pragma once

#include "base/table.h"
#include "net/address.h"

struct crowd {
    struct table neighbours;
};

struct crowd_place {
    struct neighbour *of; /* NULL: not counted */
};

void crowd_init(struct crowd *crowd);
void crowd_finish(struct crowd *crowd);

/* Counts a connection of the address, after releasing what the place counted before.
 * Returns false if the address has `most` connections already and is not excused. */
bool crowd_enter(struct crowd *crowd, struct crowd_place *place,
                 const struct address *address, unsigned most);

/* Stops counting the connection. Does nothing if the place is not counted. */
void crowd_leave(struct crowd *crowd, struct crowd_place *place);

/* Excuses the address, because it speaks for others: it may have any number of connections.
 * This lasts while it has connections. Does nothing if the place is not counted. */
void crowd_excuse(struct crowd_place *place);
