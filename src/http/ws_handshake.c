/* ws_handshake.c - what a request needs to become a WebSocket, and the answer. */
#include "http/ws_handshake.h"

#include <assert.h>
#include <openssl/evp.h>

#include "http/server_state.h"

#define FAULT(status, text) ((struct http_fault){ status, text })

enum {
    KEY_LEN = 24, /* 16 bytes in base64 */
    SHA1_LEN = 20,
};

enum err ws_handshake_init(struct server *server, struct failure *why)
{
    server->sha1 = EVP_MD_fetch(NULL, "SHA1", NULL);
    if (!server->sha1)
        return explain(why, ERR_INVALID, "OpenSSL has no SHA-1, which WebSockets need");
    return OK;
}

void ws_handshake_finish(struct server *server)
{
    EVP_MD_free(server->sha1);
}

/* How often a header comes; the value of the first one. */
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

static bool is_key(struct slice key)
{
    unsigned char decoded[KEY_LEN / 4 * 3];
    if (key.len != KEY_LEN || key.ptr[KEY_LEN - 3] == '=' || key.ptr[KEY_LEN - 2] != '=')
        return false;
    return key.ptr[KEY_LEN - 1] == '=' &&
           EVP_DecodeBlock(decoded, (const unsigned char *)key.ptr, KEY_LEN) ==
               sizeof(decoded);
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
    if (!keys || !is_key(key))
        return FAULT(400, "Send a Sec-WebSocket-Key of 16 bytes in base64");
    return FAULT(0, NULL);
}

void ws_handshake_answer(struct server *server, struct slice key,
                         char answer[WS_ACCEPT_LEN + 1])
{
    static const char guid[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
    unsigned char digest[SHA1_LEN];
    char text[KEY_LEN + sizeof(guid) - 1];
    assert(key.len == KEY_LEN);
    memcpy(text, key.ptr, KEY_LEN);
    memcpy(text + KEY_LEN, guid, sizeof(guid) - 1);
    EVP_Digest(text, sizeof(text), digest, NULL, server->sha1, NULL);
    EVP_EncodeBlock((unsigned char *)answer, digest, SHA1_LEN);
}
