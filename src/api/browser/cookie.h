/* cookie.h - the one cookie of this gateway: it holds the code of a lasting sign-in.
 *
 * Browsers send it to POST /dashboard/session alone (Path), from own pages only (SameSite),
 * over TLS only (Secure), and no page can read it (HttpOnly). Cookies ignore ports: its name
 * has the id of the gateway's data, so that two gateways of one host do not take each
 * other's for theirs. */
#pragma once

#include "api/request/call.h"

/* Returns the value of the cookie; absent if there is none, or more than one. Another server
 * of the same host may set a second one, which must not decide who signs in. */
struct slice cookie_read(const struct api_call *call);

/* Adds a header that sets the cookie, or removes it (code ""). */
void cookie_set(struct api_call *call, struct slice code, int64_t lives_ms);
