/* notice_packet.c - reads one packet, front to back. */
#include "api/worker_notices/notice_packet.h"

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Takes the namespace off: "/dev-worker?x=1," at the front; without one it is "/". */
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

static enum err read_event(struct slice data, struct notice_packet *packet)
{
    struct scan_members all;
    struct slice name, body;

    if (scan_type(data) != SCAN_ARRAY)
        return ERR_INVALID;
    all = scan_members(data);
    if (!scan_next_element(&all, &name) || scan_type(name) != SCAN_STRING)
        return ERR_INVALID;
    name = scan_unquoted(name);
    bool subscribes = scan_key_is(name, SLICE("run:subscribe"));
    if (!subscribes && !scan_key_is(name, SLICE("run:unsubscribe")))
        return OK;
    if (!scan_next_element(&all, &body) || scan_type(body) != SCAN_OBJECT)
        return OK;
    struct slice ids = scan_member(body, "runFriendlyIds");
    if (scan_type(ids) != SCAN_ARRAY)
        return OK;
    packet->ids = scan_members(ids);
    packet->kind = subscribes ? NOTICE_SUBSCRIBE : NOTICE_UNSUBSCRIBE;
    return OK;
}

static enum err read_message(struct slice text, struct notice_packet *packet)
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
    switch (type) {
    case '0': packet->kind = NOTICE_CONNECT; return OK;
    case '1': packet->kind = NOTICE_DISCONNECT; return OK;
    case '2': return read_event(rest, packet);
    case '3': return OK;
    default: return ERR_INVALID; /* a server's, or with binary parts */
    }
}

enum err notice_packet_read(struct slice text, struct notice_packet *packet)
{
    *packet = (struct notice_packet){ .kind = NOTICE_IGNORED };
    if (!text.len)
        return ERR_INVALID;
    packet->data = slice_from(text, 1);
    switch (text.ptr[0]) {
    case '1': packet->kind = NOTICE_CLOSE; return OK;
    case '2': packet->kind = NOTICE_PING; return OK;
    case '3': packet->kind = NOTICE_PONG; return OK;
    case '4': return read_message(packet->data, packet);
    case '5':
    case '6': return OK; /* of transports that are not spoken here */
    default: return ERR_INVALID;
    }
}

bool notice_packet_next(struct notice_packet *packet, struct slice *id)
{
    while (scan_next_element(&packet->ids, id)) {
        if (scan_type(*id) != SCAN_STRING || id->len < 3)
            continue;
        *id = scan_unquoted(*id);
        if (!memchr(id->ptr, '\\', id->len))
            return true; /* ids need no escapes */
    }
    return false;
}
