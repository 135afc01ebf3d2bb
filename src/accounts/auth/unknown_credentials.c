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

static bool is_at(const struct unknown_credential *place,
                  const unsigned char hash[HASH_LEN], int64_t now_ms)
{
    return now_ms < place->until && !memcmp(place->hash, hash, HASH_LEN);
}

void unknown_credentials_note(struct unknown_credentials *unknown, struct slice credential,
                              struct slice branch, int64_t now_ms)
{
    unsigned char hash[HASH_LEN];
    hash_both(credential, branch, hash);
    struct unknown_credential *place = &unknown->places[hash[0]];
    if (!is_at(place, hash, now_ms)) {
        memcpy(place->hash, hash, HASH_LEN);
        place->until = now_ms + UNKNOWN_CREDENTIAL_MS;
        place->tries = 0;
    }
    place->tries++;
}

bool unknown_credentials_have(const struct unknown_credentials *unknown,
                              struct slice credential, struct slice branch, int64_t now_ms)
{
    unsigned char hash[HASH_LEN];
    hash_both(credential, branch, hash);
    const struct unknown_credential *place = &unknown->places[hash[0]];
    return is_at(place, hash, now_ms) && place->tries >= UNKNOWN_CREDENTIAL_TRIES;
}
