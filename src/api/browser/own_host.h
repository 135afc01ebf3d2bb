/* own_host.h - checks that a request names this gateway and comes from its own pages. */
#pragma once

#include "api/request/call.h"

/* Returns true if the Host is an address, localhost or the name of public-url. Any other
 * Host is that of a web page whose name resolves to us (DNS rebinding). Also returns true
 * for requests to the admin listener, which only this machine can reach. */
bool own_host_is_named(const struct api_call *call);

/* Appends the URL to send a person to: public-url, or the request's Host if it names this
 * gateway. The caller may have invented any other Host, so a listener's address is used
 * instead. */
void own_host_url(const struct api_call *call, struct buf *out);

/* Returns true if the request came from a page of this gateway, or from a program (no
 * Origin). */
bool own_host_is_asking(const struct api_call *call);
