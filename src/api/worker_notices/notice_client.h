/* notice_client.h - who opens a notification socket: a secret key or the token of a worker. */
#pragma once

#include "api/request/call.h"
#include "api/request/connection_limit.h"

/* The identity of the caller, with a seat taken for it; both are the socket's. A refusal has
 * neither. */
enum err notice_client_identify(struct api_call *call, struct seat *seat,
                                struct identity **identity, struct failure *why);
