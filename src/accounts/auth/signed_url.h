/* signed_url.h - links that work without a credential, for one method and one name.
 *
 * The signature is an HMAC-SHA256 with the environment's secret key over method, name and
 * expiry. The signed text cannot be mistaken for a token because it contains zero bytes. A
 * link is valid as long as the key that signed it (through the grace period of a rotation),
 * and no longer than its branch. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "accounts/accounts.h"

enum { URL_SIGNATURE_LEN = 43 };

/* The end of the year 9999, for links that are valid as long as what they name. */
static const int64_t url_never_s = 253402300799;

/* Writes URL_SIGNATURE_LEN characters and a zero. method: "GET" or "PUT"; expires_s: Unix
 * s. */
void url_sign(const struct account *account, const char *method, struct slice name,
              int64_t expires_s, char out[URL_SIGNATURE_LEN + 1]);

/* Returns ERR_FORBIDDEN with the reason: expired, or the signature is wrong.
 *
 * If account is NULL (unknown) or archived, the error is the same as for a wrong
 * signature. */
enum err url_verify(struct account *account, const char *method, struct slice name,
                    int64_t expires_s, struct slice signature, int64_t now_ms,
                    struct failure *why);
