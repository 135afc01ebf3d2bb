/* call_wire.c - signs the heads of forwarded calls. */
#include "server/peers/call_wire.h"

#include <string.h>

#include "base/text.h"
#include "net/http/http_check.h"
#include "net/http/relayed.h"
#include "server/peers/peer_wire.h"

enum { MAC_TEXT = (PEER_MAC_LEN * 4 + 2) / 3 }; /* in base64url */

static void hash_call(struct slice head, struct slice origin, unsigned char hash[HASH_LEN])
{
    struct buf all = { 0 };
    buf_add(&all, head);
    buf_add(&all, origin);
    vault_hash(buf_slice(&all), hash);
    buf_finish(&all);
}

void call_wire_sign(struct peer_mac *mac, struct slice head, struct slice origin,
                    struct buf *line)
{
    unsigned char hash[HASH_LEN], made[PEER_MAC_LEN];
    char text[MAC_TEXT];
    hash_call(head, origin, hash);
    peer_mac_next(mac, hash, made);
    size_t len =
        text_to_base64url((struct slice){ (const char *)made, sizeof(made) }, text);
    buf_add_text(line, RELAYED_HEADER ": ");
    buf_add(line, origin);
    buf_print(line, " %.*s\r\n", (int)len, text);
}

/* Writes the head as the follower has sent it, without its last header. */
static void add_head(struct buf *out, const struct exchange *x)
{
    buf_print(out, "%s ", http_method_name(x->method));
    buf_add(out, x->path);
    if (x->query.ptr)
        buf_add_char(out, '?');
    buf_add(out, x->query);
    buf_add_text(out, " HTTP/1.1\r\n");
    for (size_t i = 0; i + 1 < x->header_count; i++) {
        buf_add(out, x->headers[i].name);
        buf_add_text(out, ": ");
        buf_add(out, x->headers[i].value);
        buf_add_text(out, "\r\n");
    }
}

/* Splits the value into origin and MAC. */
static bool split(struct slice value, struct slice *origin,
                  unsigned char given[PEER_MAC_LEN])
{
    size_t len;
    if (value.len <= MAC_TEXT + 1 || value.ptr[value.len - MAC_TEXT - 1] != ' ')
        return false;
    *origin = (struct slice){ value.ptr, value.len - MAC_TEXT - 1 };
    struct slice text = slice_from(value, value.len - MAC_TEXT);
    return !text_from_base64url(text, given, &len) && len == PEER_MAC_LEN;
}

/* The follower adds it last, and none before it: a client could have sent those. */
static bool has_header_once(const struct exchange *x)
{
    for (size_t i = 0; i < x->header_count; i++)
        if (http_name_is(x->headers[i].name, RELAYED_HEADER))
            return i + 1 == x->header_count;
    return false;
}

static enum peer_mux mux_of(struct slice origin, const struct exchange *x)
{
    if (!slice_is(x->path, PEER_MUX_TARGET))
        return PEER_MUX_NONE;
    return slice_is(origin, PEER_MUX_ORIGIN)         ? PEER_MUX_SEALED
           : slice_is(origin, PEER_MUX_OLDER_ORIGIN) ? PEER_MUX_HASHED
                                                     : PEER_MUX_NONE;
}

static bool read_origin(struct slice origin, struct exchange *x, enum peer_mux *mux)
{
    *mux = mux_of(origin, x);
    return *mux || relayed_read(origin, x);
}

bool call_wire_check(struct peer_mac *mac, struct exchange *x, enum peer_mux *mux)
{
    unsigned char hash[HASH_LEN], given[PEER_MAC_LEN];
    struct buf head = { 0 };
    struct slice origin;
    if (!has_header_once(x) ||
        !split(x->headers[x->header_count - 1].value, &origin, given))
        return false;
    add_head(&head, x);
    hash_call(buf_slice(&head), origin, hash);
    buf_finish(&head);
    if (!peer_mac_check(mac, hash, given) || !read_origin(origin, x, mux))
        return false;
    x->header_count--;
    return true;
}

void call_wire_seal(struct peer_mac *mac, enum peer_mux mux, struct slice items,
                    struct buf *out)
{
    unsigned char hash[HASH_LEN], made[PEER_MAC_LEN];
    if (mux == PEER_MUX_SEALED) {
        peer_mac_seal(mac, items, made);
    } else {
        vault_hash(items, hash);
        peer_mac_next(mac, hash, made);
    }
    buf_add(out, (struct slice){ (const char *)made, sizeof(made) });
}

bool call_wire_open(struct peer_mac *mac, enum peer_mux mux, struct slice *message)
{
    if (mux != PEER_MUX_SEALED)
        return peer_wire_open(mac, message);
    if (message->len < PEER_MAC_LEN)
        return false;
    struct slice items = slice_from(*message, PEER_MAC_LEN);
    if (!peer_mac_check_seal(mac, items, (const unsigned char *)message->ptr))
        return false;
    *message = items;
    return true;
}
