/* jwt.h - signs and verifies public access tokens: HS256 only (RFC 7515, RFC 8725).
 *
 * The key is the secret key of the environment, as text. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/slice.h"

/* A longer token is rejected without being read. */
enum { JWT_TEXT_MAX = 16 << 10 };

/* Returns true if the text looks like a JWT whose payload has pub: true.
 *
 * Also copies the sub claim, which names the key, zero-terminated; "" if it is absent or
 * does not fit. Neither is verified, and the payload need not even be JSON: call
 * jwt_verify. */
bool jwt_is_public_token(struct slice token, char *subject, size_t size);

/* Verifies signature, alg, typ (if present: JWT), iss, aud, exp (if present), nbf and iat.
 *
 * The leeway is 5 s for nbf and iat. Appends the payload's JSON to payload. Returns
 * ERR_UNAUTHORIZED with the reason. */
enum err jwt_verify(struct slice token, struct slice key, int64_t now_ms,
                    struct buf *payload, struct failure *why);

/* Appends a token with header {"alg":"HS256"} around the claims (a JSON object). */
void jwt_sign(struct slice claims, struct slice key, struct buf *out);
