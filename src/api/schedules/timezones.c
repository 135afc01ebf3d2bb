/* timezones.c - the names that schedules may use, for those who let users choose one.
 *
 * The answer is made at the start, of the names of the table that the system has: what is
 * offered can be used. Schedules take every name of the system's zone data, also those that
 * are not listed. */
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
        log_warn("names of time zones are not offered, for the system does not have them: "
                 "install tzdata, and in Debian 13 tzdata-legacy, then start again",
                 "missing", log_number(missing), NULL);
    return list;
}
