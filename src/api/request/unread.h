/* unread.h - what of a request nobody reads, found by the row of its route (route.h).
 *
 * The types of /openapi.json say which members a body may have and which parameters a query:
 * the others are told to the caller (ignored.h); those of a body when SDKs call the route.
 * Triggers and the items of batches name theirs themselves while they are read. */
#pragma once

#include "api/request/call.h"

/* Tells the caller which members of its body, a valid JSON object, nobody reads. */
void unread_tell_body(struct api_call *call, struct slice body);

/* Tells the caller all members of its body when its route has none. */
void unread_tell_whole_body(struct api_call *call);

/* Tells the caller which parameters nobody reads. ERR_INVALID when one that is read comes
 * twice: all but the first would be ignored. */
enum err unread_check_query(struct api_call *call);

/* Tells the caller that its x-trigger-branch chooses nothing, as the environment has no
 * branches. account NULL: it is not known yet. */
void unread_tell_branch(struct api_call *call, const struct account *account);

/* The same, and of an x-trigger-api-version that is none. ERR_MEDIA_TYPE: the body is encoded.
 * ERR_INVALID: the request id is too long. */
enum err unread_check_headers(struct api_call *call);
