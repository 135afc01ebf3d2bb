/* leases.h - which request of a worker was answered with which run.
 *
 * A worker whose answer was lost asks again under the same id, and is to get the same run:
 * else it would be nobody's until its lease is over. The run itself knows who asked for it,
 * also after a restart; this is only how it is found, among the newest 512 of its
 * environment. */
#pragma once

#include "core/fleet/fleet.h"

/* The leases of one environment. */
struct leases *leases_create(void);
void leases_destroy(struct leases *leases);

/* Notes which request got the run; nothing if it is not leased, or was asked for without an id. */
void leases_note(const struct tracked *run);

/* The run that was leased to this request and was not started yet; else NULL. */
const struct tracked *leases_find(const struct environment *env, struct slice request_id);
