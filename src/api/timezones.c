/* timezones.c - the names that schedules may use, for those who let users choose one.
 *
 * The answer is a constant: the table becomes one text when this is compiled. Schedules
 * take every name of the system's zone data, also those that are not listed. */
#include "api/api.h"
#include "api/routes.h"

#define ZONE(name) ",\"" name "\""
static const char names[] =
#include "api/timezones.def"
    ;
#undef ZONE

/* Only the exact text "true" leaves UTC out (management-api §13). */
static enum err list_timezones(struct api_call *call)
{
    bool without_utc = slice_is(api_query(call, "excludeUtc"), "true");
    struct buf body = { 0 };

    buf_add_text(&body, "{\"timezones\":[");
    if (!without_utc)
        buf_add_text(&body, "\"UTC\"");
    buf_add_text(&body, without_utc ? names + 1 : names);
    buf_add_text(&body, "]}");
    api_reply_json(call, 200, buf_slice(&body));
    buf_finish(&body);
    return OK;
}

const struct route timezones_routes[] = {
    { .method = HTTP_GET_, .pattern = "/api/v1/timezones", .handle = list_timezones },
    { 0 },
};
