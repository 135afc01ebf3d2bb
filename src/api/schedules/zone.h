/* zone.h - time zones from the system's zone data.
 *
 *   "Europe/Berlin" ─► /usr/share/zoneinfo/Europe/Berlin (TZif, RFC 9636) ─► struct zone
 *
 *   offsets   ────┐     ┌───────┐     ┌────────            UTC plus offset is
 *                 └─────┘       └─────┘                    local time
 *              transitions of the file     then its footer's rule, forever
 *
 * Times are in seconds since 1970. Local times are counted the same way and called wall
 * times. A zone never changes once it was read. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/slice.h"

enum { ZONE_NAME_MAX = 64 };

struct zone;

/* Opens a zone by name. Returns ERR_INVALID if the system does not have it. "UTC" needs
 * no file. */
enum err zone_open(struct slice name, struct zone **zone);
/* Reads a zone from the content of its file. Returns ERR_INVALID if it is malformed. */
enum err zone_read(struct slice name, struct slice file, struct zone **zone);
/* Returns true if the system has a file of that name. Does not read the file. */
bool zone_is_installed(struct slice name);
/* Ignores NULL. */
void zone_close(struct zone *zone);

/* Returns the name that it was opened with; valid as long as the zone. */
const char *zone_name(const struct zone *zone);

/* Returns the seconds to add to UTC. */
int32_t zone_offset(const struct zone *zone, int64_t utc_s);

static inline int64_t zone_wall(const struct zone *zone, int64_t utc_s)
{
    return utc_s + zone_offset(zone, utc_s);
}

/* The UTC times at which the clock shows a wall time: usually one; two if the clock was
 * set back over it; none if it was set forward over it. */
struct zone_times {
    int count;     /* 0, 1, 2 */
    int64_t first; /* if count is 0: the wall time, moved later by the length of the jump */
    int64_t second;
};

struct zone_times zone_times(const struct zone *zone, int64_t wall_s);
