/* ws_key.c - computes SHA-1 over the key and the GUID of RFC 6455. */
#include "net/http/ws_key.h"

#include <assert.h>
#include <openssl/evp.h>

enum { SHA1_LEN = 20 };

enum err ws_key_fetch_digest(struct evp_md_st **digest, struct failure *why)
{
    struct evp_md_st *sha1 = EVP_MD_fetch(NULL, "SHA1", NULL);
    if (!sha1)
        return explain(why, ERR_INVALID,
                       "OpenSSL does not support SHA-1, which WebSockets need");
    *digest = sha1;
    return OK;
}

void ws_key_free_digest(struct evp_md_st *digest)
{
    EVP_MD_free(digest);
}

bool ws_key_is_one(struct slice key)
{
    unsigned char decoded[WS_KEY_LEN / 4 * 3];
    if (key.len != WS_KEY_LEN || key.ptr[WS_KEY_LEN - 3] == '=' ||
        key.ptr[WS_KEY_LEN - 2] != '=')
        return false;
    return key.ptr[WS_KEY_LEN - 1] == '=' &&
           EVP_DecodeBlock(decoded, (const unsigned char *)key.ptr, WS_KEY_LEN) ==
               sizeof(decoded);
}

void ws_key_answer(const struct evp_md_st *digest, struct slice key,
                   char answer[WS_ACCEPT_LEN + 1])
{
    static const char guid[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
    unsigned char sha1[SHA1_LEN];
    char text[WS_KEY_LEN + sizeof(guid) - 1];
    assert(key.len == WS_KEY_LEN);
    memcpy(text, key.ptr, WS_KEY_LEN);
    memcpy(text + WS_KEY_LEN, guid, sizeof(guid) - 1);
    EVP_Digest(text, sizeof(text), sha1, NULL, digest, NULL);
    EVP_EncodeBlock((unsigned char *)answer, sha1, SHA1_LEN);
}
