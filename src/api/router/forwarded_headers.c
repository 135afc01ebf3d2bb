/* forwarded_headers.c - leaves out what belongs to one connection. */
#include "api/router/forwarded_headers.h"

#include <string.h>

#include "api/request/route.h"
#include "base/text.h"
#include "net/http/http_check.h"
#include "net/http/relayed.h"

/* Headers of one connection, and those that the server here adds. */
static bool is_hop_header(struct slice name)
{
    static const struct slice hops[] = {
        SLICE("connection"),        SLICE("keep-alive"),
        SLICE("proxy-connection"),  SLICE("te"),
        SLICE("trailer"),           SLICE("transfer-encoding"),
        SLICE("content-length"),    SLICE("expect"),
        SLICE("x-forwarded-for"),   SLICE("x-forwarded-host"),
        SLICE("x-forwarded-proto"), SLICE("forwarded")
    };
    for (size_t i = 0; i < sizeof(hops) / sizeof(hops[0]); i++)
        if (name.len == hops[i].len && http_name_is(name, hops[i].ptr))
            return true;
    return false;
}

static void add_line(struct buf *lines, struct slice name, struct slice value)
{
    buf_add(lines, name);
    buf_add_text(lines, ": ");
    buf_add(lines, value);
    buf_add_text(lines, "\r\n");
}

/* ---- the request ---- */

/* Returns true for a header without a value in place of which another key is sent. */
static bool is_replaced(const struct api_call *call, struct slice name)
{
    return call->made_key[0] && http_name_is(name, API_REQUEST_KEY);
}

size_t forwarded_headers_choose(const struct api_call *call,
                                struct http_header out[FORWARDED_HEADERS_MAX])
{
    const struct exchange *x = call->x;
    size_t count = 0;
    for (size_t i = 0; i < x->header_count && count < FORWARDED_HEADERS_MAX - 3; i++) {
        struct slice name = x->headers[i].name;
        bool is_upgrade = http_name_is(name, "upgrade");
        if (is_replaced(call, name))
            continue;
        if (is_upgrade ? x->wants_upgrade : !is_hop_header(name))
            out[count++] = x->headers[i];
    }
    if (!http_header(x, "host").ptr) /* in HTTP/1.0 */
        out[count++] = (struct http_header){ SLICE("host"), SLICE("localhost") };
    if (x->wants_upgrade)
        out[count++] = (struct http_header){ SLICE("connection"), SLICE("Upgrade") };
    if (call->made_key[0])
        out[count++] =
            (struct http_header){ SLICE(API_REQUEST_KEY), slice_of(call->made_key) };
    return count;
}

/* Returns true if the call may wait for the end of a run or a batch (held_call.h). */
static bool waits_for_end(const struct exchange *x)
{
    return x->query.ptr && memmem(x->query.ptr, x->query.len, "wait=", 5);
}

bool forwarded_headers_are_brief(const struct api_call *call, size_t body_max)
{
    const struct exchange *x = call->x;
    const struct route *route = call->route;
    uint64_t length = 0;
    text_to_u64(http_header(x, "content-length"), &length);
    return route && !route->is_alone && !(route->auth & BODY_SLOW) && !x->chunked &&
           !x->wants_upgrade && x->method != HTTP_HEAD_ && length <= body_max &&
           !waits_for_end(x);
}

/* ---- the response ---- */

enum forwarded_fate forwarded_headers_keep(struct buf *lines, int status,
                                           const struct http_header *headers, size_t count)
{
    bool switches = status == 101;
    enum forwarded_fate fate = FATE_KNOWN;
    for (size_t i = 0; i < count; i++)
        if (http_name_is(headers[i].name, RELAYED_UNTAKEN))
            fate = FATE_UNTAKEN;
        else if (http_name_is(headers[i].name, RELAYED_UNSURE))
            fate = FATE_UNSURE;
        else if (!http_name_is(headers[i].name, "date") &&
                 (switches || (!is_hop_header(headers[i].name) &&
                               !http_name_is(headers[i].name, "upgrade"))))
            add_line(lines, headers[i].name, headers[i].value);
    return fate;
}

/* Appends the lines without this one. Returns false, and appends nothing, if it is not there. */
static bool cut_line(struct buf *out, struct slice lines, struct slice line)
{
    const char *at = memmem(lines.ptr, lines.len, line.ptr, line.len);
    if (!at)
        return false;
    size_t before = (size_t)(at - lines.ptr);
    buf_add(out, (struct slice){ lines.ptr, before });
    buf_add(out, slice_from(lines, before + line.len));
    return true;
}

enum forwarded_fate forwarded_headers_keep_lines(struct buf *out, struct slice lines)
{
    if (cut_line(out, lines, SLICE(RELAYED_UNTAKEN ": 1\r\n")))
        return FATE_UNTAKEN;
    if (cut_line(out, lines, SLICE(RELAYED_UNSURE ": 1\r\n")))
        return FATE_UNSURE;
    buf_add(out, lines);
    return FATE_KNOWN;
}

bool forwarded_headers_length(const struct http_header *headers, size_t count,
                              uint64_t *length)
{
    for (size_t i = 0; i < count; i++)
        if (http_name_is(headers[i].name, "content-length"))
            return !text_to_u64(headers[i].value, length);
    return false;
}
