/* own_host.h - whether a request names this gateway as somebody's browser may. */
#pragma once

#include "api/request/call.h"

/* The Host is an address, localhost, or the name of public-url: else it is of a web page whose name
 * leads here (DNS rebinding). The admin listener is reached by those of this machine alone. */
bool own_host_is_named(const struct api_call *call);

/* Appends the URL that a person is sent to: public-url, or the Host of the request if it names this
 * gateway. Any other Host is the caller's invention; the address of a listener stands for it. */
void own_host_url(const struct api_call *call, struct buf *out);

/* A page that this gateway has served sends the request, or a program, which sends no Origin. */
bool own_host_is_asking(const struct api_call *call);
