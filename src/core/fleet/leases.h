/* leases.h - finds the run that a worker's request has received.
 *
 * A worker whose response was lost repeats its request with the same id and must get the
 * same run; otherwise no worker would have that run until its lease expires. The run itself
 * stores the request's id, which thus survives a restart. This index finds it among the
 * newest 512 of its environment. */
#pragma once

#include "core/fleet/fleet.h"

/* The leases of one environment. */
struct leases *leases_create(void);
void leases_destroy(struct leases *leases);

/* Notes which request got the run. Does nothing if the run is not leased or its request had
 * no id. */
void leases_note(const struct tracked *run);

/* Returns the run that was leased to this request and has not started yet, or NULL. */
const struct tracked *leases_find(const struct environment *env, struct slice request_id);
