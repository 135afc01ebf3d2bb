/* jwt.h - public access tokens: exactly HS256 (RFC 7515, RFC 8725), nothing else.
 *
 * The key is the secret key of the environment, as text (management-api §3.3). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/slice.h"

/* A longer token is refused unread. */
enum { JWT_TEXT_MAX = 16 << 10 };

/* True when the text has the shape of a JWT whose payload says pub: true. Checks nothing
 * else: it decides which way a credential is looked at. */
bool jwt_is_public_token(struct slice token);

/* The sub claim of a token not verified yet, copied to out (terminated). ERR_INVALID: there
 * is none, or it does not fit. */
enum err jwt_subject(struct slice token, char *out, size_t size);

/* Signature, alg, typ (if there: JWT), iss, aud, exp (if there), nbf and iat (leeway 5 s).
 * Appends the payload's JSON to payload. ERR_UNAUTHORIZED with the reason. */
enum err jwt_verify(struct slice token, struct slice key, int64_t now_ms,
                    struct buf *payload, struct failure *why);

/* Appends a token with header {"alg":"HS256"} around the claims (a JSON object). */
void jwt_sign(struct slice claims, struct slice key, struct buf *out);
