/* signed.h - URLs that need no credential, because the gateway has signed them.
 *
 *   head ─► signed_enter ─► account and environment of the call ─► body ─► handler
 *
 * A URL is verified when the head of its request is complete: nothing that a stranger sends
 * behind it is read. */
#pragma once

#include "api/request/call.h"

/* Verifies the URL by the form that the row of the route names, and enters its environment:
 * call->account and call->env. ERR_FORBIDDEN: it was not signed like this, has expired, its
 * environment is gone, or the row names no form. ERR_INVALID: it is not well-formed. */
enum err signed_enter(struct api_call *call);
