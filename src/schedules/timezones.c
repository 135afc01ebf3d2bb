/* timezones.c - the names that schedules may use, for those who let users choose one.
 *
 * The answer is made at the start, of the names of the table that the system has: what is
 * offered can be used. Schedules take every name of the system's zone data, also those that
 * are not listed. */
#include "schedules/timezones.h"

#include "base/log.h"
#include "call/call.h"
#include "call/route.h"
#include "schedules/zone.h"

#define ZONE(name) name,
static const char *const names[] = {
#include "schedules/timezones.def"
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

/* Only the exact text "true" leaves UTC out (management-api §13). */
static enum err list_timezones(struct api_call *call)
{
    bool without_utc = slice_is(api_query(call, "excludeUtc"), "true");
    struct slice listed = bytes_slice(api_timezones(call->api));
    struct buf body = { 0 };

    buf_add_text(&body, "{\"timezones\":[");
    if (!without_utc)
        buf_add_text(&body, listed.len ? "\"UTC\"," : "\"UTC\"");
    buf_add(&body, listed);
    buf_add_text(&body, "]}");
    api_reply_json(call, 200, buf_slice(&body));
    buf_finish(&body);
    return OK;
}

/* clang-format off */
static const struct route routes[] = {
    { .method = HTTP_GET_, .path = "/api/v1/timezones",
      .handle = list_timezones,
      .id = "get_timezones_v1", .summary = "List the time zones that schedules may name",
      .query = "excludeUtc?: string",
      .reply = "GetTimezonesResult" },
    { 0 },
};
/* clang-format on */

const struct area timezones_area = { .tag = "schedules",
                                     .is_for_users = true,
                                     .routes = routes };
