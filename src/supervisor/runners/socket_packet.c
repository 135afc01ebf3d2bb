/* socket_packet.c - reads one packet, front to back, and writes those that are ours. */
#include "supervisor/runners/socket_packet.h"

#include "base/json/scan.h"
#include "base/text.h"

enum { SID_LEN = 20, MESSAGE_MAX = 1000000 };

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* "/workload?x=1," at the front; without one it is "/". */
static struct slice take_space(struct slice *rest)
{
    struct slice space, name;
    if (!slice_starts(*rest, "/"))
        return SLICE("/");
    slice_split(rest, ',', &space);
    if (!rest->ptr)
        *rest = (struct slice){ space.ptr + space.len, 0 };
    slice_split(&space, '?', &name);
    return name;
}

/* Ids and names of events need no escapes. Absent: it is no string. */
static struct slice plain_text(struct slice value)
{
    if (scan_type(value) != SCAN_STRING || memchr(value.ptr, '\\', value.len))
        return (struct slice){ 0 };
    return (struct slice){ value.ptr + 1, value.len - 2 };
}

static enum err read_event(struct slice data, struct socket_packet *packet)
{
    struct slice name, body, run;
    if (scan_type(data) != SCAN_ARRAY)
        return ERR_INVALID;
    struct scan_members all = scan_members(data);
    if (!scan_next_element(&all, &name) || scan_type(name) != SCAN_STRING)
        return ERR_INVALID;
    packet->kind = SOCKET_EVENT;
    packet->name = plain_text(name);
    if (!scan_next_element(&all, &body) || scan_type(body) != SCAN_OBJECT)
        return OK;
    run = scan_member(body, "run");
    if (scan_type(run) == SCAN_OBJECT)
        packet->run = plain_text(scan_member(run, "friendlyId"));
    return OK;
}

static enum err read_message(struct slice text, struct socket_packet *packet)
{
    if (!text.len)
        return ERR_INVALID;
    char type = text.ptr[0];
    struct slice rest = slice_from(text, 1);
    packet->space = take_space(&rest);
    while (rest.len && is_digit(rest.ptr[0]))
        rest = slice_from(rest, 1);
    if (rest.len && !scan_is_json(rest))
        return ERR_INVALID;
    packet->data = rest;
    switch (type) {
    case '0': packet->kind = SOCKET_CONNECT; return OK;
    case '1': packet->kind = SOCKET_DISCONNECT; return OK;
    case '2': return read_event(rest, packet);
    case '3': return OK;
    case '4': packet->kind = SOCKET_REFUSED; return OK;
    default: return ERR_INVALID; /* with binary parts */
    }
}

enum err socket_packet_read(struct slice text, struct socket_packet *packet)
{
    *packet = (struct socket_packet){ .kind = SOCKET_IGNORED };
    if (!text.len)
        return ERR_INVALID;
    packet->data = slice_from(text, 1);
    switch (text.ptr[0]) {
    case '0': packet->kind = SOCKET_OPEN; return OK;
    case '1': packet->kind = SOCKET_CLOSE; return OK;
    case '2': packet->kind = SOCKET_PING; return OK;
    case '3': packet->kind = SOCKET_PONG; return OK;
    case '4': return read_message(packet->data, packet);
    case '5':
    case '6': return OK; /* of transports that are not spoken here */
    default: return ERR_INVALID;
    }
}

void socket_packet_add_notice(struct buf *out, const char *space, struct slice run)
{
    buf_print(out,
              "42%s,[\"run:notify\",{\"version\":\"1\",\"run\":{\"friendlyId\":", space);
    buf_add_json(out, run);
    buf_add_text(out, "}}]");
}

void socket_packet_add_wish(struct buf *out, const char *space, const char *name,
                            struct slice run)
{
    buf_print(out, "42%s,[\"%s\",{\"version\":\"1\",\"runFriendlyIds\":[", space, name);
    buf_add_json(out, run);
    buf_add_text(out, "]}]");
}

static void add_sid(struct buf *out)
{
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    char sid[SID_LEN + 1] = "";
    text_random(sid, SID_LEN, alphabet);
    buf_print(out, "{\"sid\":\"%s\"", sid);
}

void socket_packet_add_open(struct buf *out, int ping_ms, int pong_timeout_ms)
{
    buf_add_char(out, '0');
    add_sid(out);
    buf_print(out,
              ",\"upgrades\":[],\"pingInterval\":%d,\"pingTimeout\":%d,\"maxPayload\":%d}",
              ping_ms, pong_timeout_ms, MESSAGE_MAX);
}

void socket_packet_add_granted(struct buf *out, const char *space)
{
    buf_print(out, "40%s,", space);
    add_sid(out);
    buf_add_char(out, '}');
}
