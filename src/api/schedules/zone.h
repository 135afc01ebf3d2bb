/* zone.h - time zones from the system's zone data.
 *
 *   "Europe/Berlin" ─► /usr/share/zoneinfo/Europe/Berlin (TZif, RFC 9636) ─► struct zone
 *
 *   offsets   ────┐     ┌───────┐     ┌────────            UTC plus offset is what the
 *                 └─────┘       └─────┘                    clock on the wall shows
 *              transitions of the file     then its footer's rule, for ever
 *
 * Times are seconds since 1970; a wall time is what the clock shows, counted the same way.
 * A zone never changes once it is read. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/slice.h"

enum { ZONE_NAME_MAX = 64 };

struct zone;

/* ERR_INVALID: the system knows no zone of that name. "UTC" needs no file. */
enum err zone_open(struct slice name, struct zone **zone);
/* The same from the bytes of a file. */
enum err zone_read(struct slice name, struct slice file, struct zone **zone);
/* True: the system has a file of that name. Its content is not looked at. */
bool zone_is_installed(struct slice name);
/* NULL is fine. */
void zone_close(struct zone *zone);

/* Borrowed, as it was opened. */
const char *zone_name(const struct zone *zone);

/* Seconds to add to UTC. */
int32_t zone_offset(const struct zone *zone, int64_t utc_s);

static inline int64_t zone_wall(const struct zone *zone, int64_t utc_s)
{
    return utc_s + zone_offset(zone, utc_s);
}

/* When the wall shows a time: once as a rule; twice when the clock was set back over it;
 * never when it was set forward over it. */
struct zone_times {
    int count;     /* 0, 1, 2 */
    int64_t first; /* of none: as much after the jump as the time is after its start */
    int64_t second;
};

struct zone_times zone_times(const struct zone *zone, int64_t wall_s);
