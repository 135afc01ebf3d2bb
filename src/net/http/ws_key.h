/* ws_key.h - the opening handshake's key and the response to it (RFC 6455 §1.3).
 *
 * Both sides compute the response. */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "base/slice.h"

struct evp_md_st;

enum {
    WS_KEY_LEN = 24,    /* 16 bytes in base64 */
    WS_ACCEPT_LEN = 28, /* length of the response */
};

/* Fetches the hash function, owned by the caller. ERR_INVALID: OpenSSL does not have it. */
enum err ws_key_fetch_digest(struct evp_md_st **digest, struct failure *why);

/* Ignores NULL. */
void ws_key_free_digest(struct evp_md_st *digest);

/* Returns true for 16 bytes in base64. */
bool ws_key_is_one(struct slice key);

/* Computes Sec-WebSocket-Accept for such a key, terminated. */
void ws_key_answer(const struct evp_md_st *digest, struct slice key,
                   char answer[WS_ACCEPT_LEN + 1]);
