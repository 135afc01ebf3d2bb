/* unknown_credentials.c - remembers one credential for each first byte of a hash. */
#include "accounts/auth/unknown_credentials.h"

#include <string.h>

#include "base/buf.h"

static void hash_both(struct slice credential, struct slice branch,
                      unsigned char hash[HASH_LEN])
{
    struct buf both = { 0 };
    buf_add(&both, credential);
    buf_add_char(&both, '\0');
    buf_add(&both, branch);
    vault_hash(buf_slice(&both), hash);
    buf_finish(&both);
}

void unknown_credentials_note(struct unknown_credentials *unknown, struct slice credential,
                              struct slice branch, int64_t now_ms)
{
    unsigned char hash[HASH_LEN];
    hash_both(credential, branch, hash);
    memcpy(unknown->places[hash[0]].hash, hash, HASH_LEN);
    unknown->places[hash[0]].until = now_ms + UNKNOWN_CREDENTIAL_MS;
}

bool unknown_credentials_have(const struct unknown_credentials *unknown,
                              struct slice credential, struct slice branch, int64_t now_ms)
{
    unsigned char hash[HASH_LEN];
    hash_both(credential, branch, hash);
    return now_ms < unknown->places[hash[0]].until &&
           !memcmp(unknown->places[hash[0]].hash, hash, HASH_LEN);
}
