/* crowd.h - how many connections each address has.
 *
 * An IPv6 network of 64 bits counts as one address: whoever has one address of it has all. */
#pragma once

#include "base/table.h"
#include "net/address.h"

struct crowd {
    struct table neighbours;
};

struct crowd_place {
    struct neighbour *of; /* NULL: not taken */
};

void crowd_init(struct crowd *crowd);
void crowd_finish(struct crowd *crowd);

/* Counts one more connection of the address, and none any more where the place counted before.
 * False: the address has `most` connections already, and is not excused. */
bool crowd_enter(struct crowd *crowd, struct crowd_place *place,
                 const struct address *address, unsigned most);

/* Nothing happens if the place is not taken. */
void crowd_leave(struct crowd *crowd, struct crowd_place *place);

/* The address speaks for others: for as long as it has connections it may have any number.
 * Nothing happens to a place that is not taken. */
void crowd_excuse(struct crowd_place *place);
