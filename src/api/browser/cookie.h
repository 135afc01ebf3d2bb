/* cookie.h - the one cookie of this gateway: it holds the code of a lasting sign-in.
 *
 * Browsers send it to POST /dashboard/session alone (Path), from own pages only (SameSite),
 * over TLS only (Secure), and no page can read it (HttpOnly). Cookies ignore ports: its name
 * has the id of the gateway's data, so that two gateways of one host do not take each
 * other's for theirs. */
#pragma once

#include "api/request/call.h"

enum { COOKIES_MAX = 8 /* of our name that a call may have; more are ignored */ };

/* Returns the value of the cookie with our name at this place, from 0; absent if there is none.
 * Another server of the same site may set further ones (Domain), and browsers send all. */
struct slice cookie_read(const struct api_call *call, size_t place);

/* Adds a header that sets the cookie, or removes it (code ""). */
void cookie_set(struct api_call *call, struct slice code, int64_t lives_ms);
