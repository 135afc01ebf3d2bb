/* timezones.c - the list of time zone names that clients can offer to users.
 *
 * The list is made once at start and contains the names of the table that the system
 * has, so every offered name can be used. Schedules accept any name of the system's zone
 * data, even if it is not listed. */
#include "api/schedules/timezones.h"

#include "api/schedules/zone.h"
#include "base/buf.h"
#include "base/log.h"

#define ZONE(name) name,
static const char *const names[] = {
#include "api/schedules/timezones.def"
};
#undef ZONE

struct bytes *timezones_list(bool (*has)(struct slice name), unsigned *missing)
{
    struct buf out = { 0 };
    *missing = 0;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (has(slice_of(names[i])))
            buf_print(&out, "%s\"%s\"", out.len ? "," : "", names[i]);
        else
            ++*missing;
    }
    struct bytes *list = bytes_create(buf_slice(&out));
    buf_finish(&out);
    return list;
}

struct bytes *timezones_list_installed(void)
{
    unsigned missing;
    struct bytes *list = timezones_list(zone_is_installed, &missing);
    if (missing)
        log_warn("names of time zones are missing on this system; install tzdata (in "
                 "Debian 13 also tzdata-legacy) and restart",
                 "missing", log_number(missing), NULL);
    return list;
}
