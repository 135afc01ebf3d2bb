/* socket_packet.c - reads one packet, front to back, and writes packets. */
#include "net/socket_packet.h"

#include "base/json/scan.h"
#include "base/text.h"

enum { SID_LEN = 20 };

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Takes the namespace off the front: "/dev-worker?x=1,". The default is "/". */
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

static enum err read_event(struct slice data, struct socket_packet *packet)
{
    struct slice name;
    if (scan_type(data) != SCAN_ARRAY)
        return ERR_INVALID;
    struct scan_members all = scan_members(data);
    if (!scan_next_element(&all, &name) || scan_type(name) != SCAN_STRING)
        return ERR_INVALID;
    packet->kind = SOCKET_EVENT;
    packet->name = scan_unquoted(name);
    if (!scan_next_element(&all, &packet->body))
        packet->body = (struct slice){ 0 };
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
    case '6': return OK; /* for other transports */
    default: return ERR_INVALID;
    }
}

static void add_sid(struct buf *out)
{
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    char sid[SID_LEN + 1] = "";
    text_random(sid, SID_LEN, alphabet);
    buf_print(out, "{\"sid\":\"%s\"", sid);
}

void socket_packet_add_open(struct buf *out, int ping_ms, int pong_timeout_ms,
                            int message_max)
{
    buf_add_char(out, '0');
    add_sid(out);
    buf_print(out,
              ",\"upgrades\":[],\"pingInterval\":%d,\"pingTimeout\":%d,\"maxPayload\":%d}",
              ping_ms, pong_timeout_ms, message_max);
}

void socket_packet_add_pong(struct buf *out, struct slice data)
{
    buf_add_char(out, '3');
    buf_add(out, data);
}

void socket_packet_add_granted(struct buf *out, const char *space)
{
    buf_print(out, "40%s,", space);
    add_sid(out);
    buf_add_char(out, '}');
}

void socket_packet_add_refused(struct buf *out, struct slice space, const char *reason)
{
    buf_add_text(out, "44");
    if (space.len > 1)
        buf_print(out, "%.*s,", SLICE_ARG(space));
    buf_add_text(out, "{\"message\":");
    buf_add_json(out, slice_of(reason));
    buf_add_char(out, '}');
}

void socket_packet_begin_event(struct buf *out, const char *space, const char *name)
{
    buf_print(out, "42%s,[\"%s\",", space, name);
}

void socket_packet_end_event(struct buf *out)
{
    buf_add_char(out, ']');
}
