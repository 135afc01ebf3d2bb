/* ws_handshake.c - what a request needs to become a WebSocket. */
#include "net/http/ws_handshake.h"

#include "net/http/ws_key.h"

#define FAULT(status, text) ((struct http_fault){ status, text })

/* Counts how often a header comes; gives the value of the first one. */
static unsigned count(const struct exchange *x, const char *name, struct slice *value)
{
    unsigned found = 0;
    *value = (struct slice){ 0 };
    for (size_t i = 0; i < x->header_count; i++) {
        if (!http_name_is(x->headers[i].name, name))
            continue;
        if (!found++)
            *value = x->headers[i].value;
    }
    return found;
}

struct http_fault ws_handshake_check(const struct exchange *x)
{
    struct slice key, version, upgrade, origin;
    unsigned keys = count(x, "sec-websocket-key", &key);
    unsigned versions = count(x, "sec-websocket-version", &version);
    unsigned upgrades = count(x, "upgrade", &upgrade);
    if (x->method != HTTP_GET_)
        return FAULT(405, "Open a WebSocket with GET");
    if (!upgrades)
        return FAULT(426, "This is a WebSocket: send 'Upgrade: websocket'");
    if (!x->wants_upgrade)
        return FAULT(400,
                     "Send 'Upgrade: websocket' and 'Connection: Upgrade', in HTTP/1.1");
    if (upgrades > 1 || keys > 1 || versions > 1 || count(x, "origin", &origin) > 1)
        return FAULT(400, "Send each header of the WebSocket handshake once");
    if (x->chunked || x->body.len)
        return FAULT(400, "Open a WebSocket without a body");
    if (!slice_is(version, "13"))
        return FAULT(426, "Send 'Sec-WebSocket-Version: 13'");
    if (!keys || !ws_key_is_one(key))
        return FAULT(400, "Send a Sec-WebSocket-Key of 16 bytes in base64");
    return FAULT(0, NULL);
}
