/* batch_token.h - what whoever made a batch, or found it by its key, may do with it. */
#pragma once

#include "api/request/call.h"

/* "read:batch:…", and for a browser, which streams the items with it, "write:batch:…". Of a
 * batch that is not new only what the caller may do itself. */
void batch_add_token(struct api_call *call, const char *id, bool is_new, bool writes);
