/* jwt.h - public access tokens: exactly HS256 (RFC 7515, RFC 8725), nothing else.
 *
 * The key is the secret key of the environment, as text. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/slice.h"

/* A longer token is refused unread. */
enum { JWT_TEXT_MAX = 16 << 10 };

/* True when the text has the shape of a JWT whose payload says pub: true: it decides which
 * way a credential is looked at. Also tells the sub claim, which names the key (terminated;
 * "": there is none, or it does not fit). Both are claims of a stranger: the payload need not
 * even be JSON until jwt_verify has seen it. */
bool jwt_is_public_token(struct slice token, char *subject, size_t size);

/* Signature, alg, typ (if there: JWT), iss, aud, exp (if there), nbf and iat (leeway 5 s).
 * Appends the payload's JSON to payload. ERR_UNAUTHORIZED with the reason. */
enum err jwt_verify(struct slice token, struct slice key, int64_t now_ms,
                    struct buf *payload, struct failure *why);

/* Appends a token with header {"alg":"HS256"} around the claims (a JSON object). */
void jwt_sign(struct slice claims, struct slice key, struct buf *out);
