/* batch_token.h - the public token for clients that create or find a batch. */
#pragma once

#include "api/request/call.h"

/* Adds a token with the scope "read:batch:…". With writes also "write:batch:…", for a
 * browser, which streams the items with it. If the batch is not new, leaves out scopes
 * that the caller lacks. */
void batch_add_token(struct api_call *call, const char *id, bool is_new, bool writes);
