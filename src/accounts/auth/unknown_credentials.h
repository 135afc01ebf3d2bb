/* unknown_credentials.h - credentials that the leader did not know a moment ago, by their hash.
 *
 * A gateway that follows may lack a key that was just created. Before it refuses one, it waits
 * until it has every change of the accounts that the leader has. An invalid credential that is
 * repeated causes this a few times a second: one that was tried too early may be created in
 * the meantime. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "base/vault/vault.h"

enum {
    UNKNOWN_CREDENTIALS = 256, /* places, by the first byte of the hash */
    UNKNOWN_CREDENTIAL_MS = 1000,
    UNKNOWN_CREDENTIAL_TRIES = 4, /* in that time */
};

/* Begins zeroed; there is nothing to finish. */
struct unknown_credentials {
    struct unknown_credential {
        unsigned char hash[HASH_LEN];
        int64_t until; /* monotonic ms */
        unsigned tries;
    } places[UNKNOWN_CREDENTIALS];
};

/* Notes that the credential, for this branch, is unknown. Either may be absent. */
void unknown_credentials_note(struct unknown_credentials *unknown, struct slice credential,
                              struct slice branch, int64_t now_ms);

/* Returns true if that was noted UNKNOWN_CREDENTIAL_TRIES times since UNKNOWN_CREDENTIAL_MS. */
bool unknown_credentials_have(const struct unknown_credentials *unknown,
                              struct slice credential, struct slice branch, int64_t now_ms);
