/* own_host.h - whether a request names this gateway as somebody's browser may. */
#pragma once

#include "call/call.h"

/* The Host is an address, localhost, or the name of public-url: else it is of a web page whose name
 * leads here (DNS rebinding). The admin listener is reached by those of this machine alone. */
bool own_host_is_named(const struct api_call *call);

/* A page that this gateway has served sends the request, or a program, which sends no Origin. */
bool own_host_is_asking(const struct api_call *call);
