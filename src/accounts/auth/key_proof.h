/* key_proof.h - checks what the private half of a browser's key has signed.
 *
 * ECDSA on P-256 with SHA-256, in the forms of the Web Crypto API: a key is an uncompressed
 * point, and a signature is r and s, of 32 bytes each. */
#pragma once

#include <stdbool.h>

#include "base/slice.h"

enum { KEY_PROOF_KEY_LEN = 65, KEY_PROOF_LEN = 64 };

/* Returns true for a point of the curve. */
bool key_proof_key_is_right(const unsigned char key[KEY_PROOF_KEY_LEN]);

/* Returns true if the key has signed the text. */
bool key_proof_is_right(const unsigned char key[KEY_PROOF_KEY_LEN], struct slice text,
                        const unsigned char signature[KEY_PROOF_LEN]);
