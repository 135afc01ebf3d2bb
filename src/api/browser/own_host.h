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

/* Returns true if the dashboard is shown where the request came in. */
bool own_host_has_dashboard(const struct api_call *call);

/* Appends the origin of the pages that a browser gets from this Host: "https://" and the
 * Host, if the connection has TLS or public-url says that a proxy ends it. Returns false if
 * the Host does not name this gateway. */
bool own_host_origin(const struct api_call *call, struct buf *out);

/* How the browser of an own page reaches this gateway. */
enum own_host_way {
    OWN_HOST_TLS,
    OWN_HOST_LOCAL, /* without TLS, on the same machine */
    OWN_HOST_PLAIN, /* without TLS, over a network */
};
enum own_host_way own_host_way(const struct api_call *call);

/* Refuses a request unless a browser says that an own page has sent it, with a body of JSON.
 * Unlike own_host_is_asking, it does not admit programs: Origin and Sec-Fetch-Site must be
 * there. A page cannot set these headers. */
enum err own_host_check_page(struct api_call *call);
