/* signed.h - verifies URLs that need no credential because the gateway has signed them.
 *
 *   head ─► signed_enter ─► account and environment of the call ─► body ─► handler
 *
 * A URL is verified when the head of its request is complete, so nothing that an
 * unauthorized client sends after it is read. */
#pragma once

#include "api/request/call.h"

/* Verifies the URL by the form that the route's row names, and enters its environment: sets
 * call->account and call->env. Returns ERR_FORBIDDEN if the URL was not signed this way,
 * has expired, its environment is gone, or the row names no form; ERR_INVALID if it is
 * malformed. */
enum err signed_enter(struct api_call *call);

/* Returns the environment that has signed the URL of a call that has not entered; NULL: none
 * that is known here. */
const struct account *signed_find(const struct api_call *call);
