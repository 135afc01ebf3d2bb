/* signed_url.h - links that need no credential: who made them says what they are for.
 *
 * HMAC-SHA256 with the environment's secret key over method, name and expiry. What is
 * signed cannot be mistaken for a token: it contains zero bytes. A link lives as long as
 * the key it was signed with: through the grace period of a rotation, and no longer than
 * its branch. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "accounts/accounts.h"

enum { URL_SIGNATURE_LEN = 43 };

/* The end of the year 9999, for links that are good as long as what they name. */
static const int64_t url_never_s = 253402300799;

/* Writes URL_SIGNATURE_LEN characters and a zero. method is "GET" or "PUT"; expires_s is in
 * Unix seconds. */
void url_sign(const struct account *account, const char *method, struct slice name,
              int64_t expires_s, char out[URL_SIGNATURE_LEN + 1]);

/* ERR_FORBIDDEN with the reason: expired, or not ours. account NULL or archived: the URL
 * names nobody, which is no other answer than that somebody did not sign it. */
enum err url_verify(struct account *account, const char *method, struct slice name,
                    int64_t expires_s, struct slice signature, int64_t now_ms,
                    struct failure *why);
