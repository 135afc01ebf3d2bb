/* peer_wire.c - statements, texts, MACs and seals of messages between two gateways. */
#include "server/peers/peer_wire.h"

#include <string.h>

#include "base/text.h"

/* Bytes of base64url for the longest message of a follower. */
enum { TEXT_MAX = (PEER_TEXT_MAX * 4 + 2) / 3 };

void peer_wire_add_statement(struct buf *out, const unsigned char random[PEER_RANDOM_LEN],
                             uint64_t id)
{
    buf_add(out, (struct slice){ (const char *)random, PEER_RANDOM_LEN });
    for (int i = 0; i < PEER_ID_LEN; i++)
        buf_add_char(out, (char)(id >> 8 * (PEER_ID_LEN - 1 - i)));
}

bool peer_wire_take_statement(struct slice *message, unsigned char random[PEER_RANDOM_LEN],
                              uint64_t *id)
{
    if (message->len < PEER_OPENING_LEN)
        return false;
    memcpy(random, message->ptr, PEER_RANDOM_LEN);
    *id = 0;
    for (int i = 0; i < PEER_ID_LEN; i++)
        *id = *id << 8 | (unsigned char)message->ptr[PEER_RANDOM_LEN + i];
    *message = slice_from(*message, PEER_OPENING_LEN);
    return true;
}

void peer_wire_add_text(struct buf *out, struct slice bytes)
{
    char *at = buf_reserve(out, (bytes.len * 4 + 2) / 3);
    out->len += text_to_base64url(bytes, at);
}

bool peer_wire_read_text(struct slice text, unsigned char bytes[PEER_TEXT_MAX],
                         struct slice *message)
{
    size_t len;
    if (text.len > TEXT_MAX || text_from_base64url(text, bytes, &len))
        return false;
    *message = (struct slice){ (const char *)bytes, len };
    return true;
}

bool peer_wire_open(struct peer_mac *mac, struct slice *message)
{
    unsigned char hash[HASH_LEN];
    if (message->len < PEER_MAC_LEN)
        return false;
    struct slice body = slice_from(*message, PEER_MAC_LEN);
    vault_hash(body, hash);
    if (!peer_mac_check(mac, hash, (const unsigned char *)message->ptr))
        return false;
    *message = body;
    return true;
}

bool peer_wire_open_sealed(struct peer_mac *mac, struct peer_group *group,
                           struct slice *message)
{
    enum { HEAD = PEER_MAC_LEN + PEER_SEAL_LEN };
    unsigned char hash[HASH_LEN];
    if (message->len < HEAD)
        return false;
    struct slice body = slice_from(*message, HEAD);
    const char *seal = message->ptr + PEER_MAC_LEN;
    vault_hash((struct slice){ seal, PEER_SEAL_LEN }, hash);
    if (!peer_mac_check(mac, hash, (const unsigned char *)message->ptr) ||
        !peer_group_check(group, body, (const unsigned char *)seal))
        return false;
    *message = body;
    return true;
}
