/* own_host.h - checks that a request names this gateway and comes from its own pages. */
#pragma once

#include "api/request/call.h"

/* Returns true if the Host is an address, localhost or the name of public-url. Any other
 * Host is that of a web page whose name leads here (DNS rebinding). Also returns true for
 * requests to the admin listener, which only this machine reaches. */
bool own_host_is_named(const struct api_call *call);

/* Appends the URL to send a person to: public-url, or the request's Host if it names this
 * gateway. Any other Host may be the caller's invention; then the address of a listener is
 * used. */
void own_host_url(const struct api_call *call, struct buf *out);

/* Returns true if a page of this gateway sent the request, or a program (no Origin). */
bool own_host_is_asking(const struct api_call *call);
