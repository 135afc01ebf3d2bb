/* upgrade.c - reads the headers of a WebSocket's upgrade. */
#include "api/realtime/upgrade.h"

#include "runcast/protocol.h"

bool upgrade_origin_is_allowed(const struct api_call *call, struct slice origin)
{
    struct slice allowed = slice_of(api_options(call->api)->allow_origin), one;
    struct slice own = origin;

    if (slice_starts(own, "http://"))
        own = slice_from(own, 7);
    else if (slice_starts(own, "https://"))
        own = slice_from(own, 8);
    if (slice_equal(own, http_header(call->x, "host")) && own.len != origin.len)
        return true;
    while (slice_split(&allowed, ',', &one)) {
        one = slice_trim(one);
        if (slice_is(one, "*") || (one.len && slice_equal(one, origin)))
            return true;
    }
    return false;
}

static bool choose_one(struct slice name, const char **protocol, enum encoding *encoding)
{
    bool is_msgpack = slice_is(name, protocol_msgpack);
    if (!is_msgpack && !slice_is(name, protocol_json))
        return false;
    *protocol = is_msgpack ? protocol_msgpack : protocol_json;
    *encoding = is_msgpack ? ENCODING_MSGPACK : ENCODING_JSON;
    return true;
}

enum err upgrade_choose_protocol(struct api_call *call, const char **protocol,
                                 enum encoding *encoding)
{
    struct slice offered, one;
    bool any = false;
    *protocol = NULL;
    *encoding = ENCODING_JSON;
    for (size_t at = 0;
         http_next_header(call->x, "sec-websocket-protocol", &at, &offered);) {
        any |= slice_trim(offered).len > 0;
        while (slice_split(&offered, ',', &one))
            if (choose_one(slice_trim(one), protocol, encoding))
                return OK;
    }
    if (!any)
        return OK;
    return explain(&call->why, ERR_INVALID, "Unknown subprotocol: offer %s or %s",
                   protocol_json, protocol_msgpack);
}
