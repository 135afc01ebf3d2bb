/* unread.h - reports the members and parameters of a request that are unknown.
 *
 * The types of /openapi.json define which members a body may have, and which parameters a
 * query. All others are reported to the caller (ignored.h); those of a body only if SDKs
 * call the route. Triggers and batch items report theirs while they are read. */
#pragma once

#include "api/request/call.h"

/* Reports the unknown members of the body, a valid JSON object. */
void unread_report_body(struct api_call *call, struct slice body);

/* Reports all members of the body if its route has none. */
void unread_report_whole_body(struct api_call *call);

/* Reports unknown parameters. Returns ERR_INVALID for an unknown filter, and for a known
 * parameter that comes twice, because all but the first would be ignored. */
enum err unread_check_query(struct api_call *call);

/* Reports an x-trigger-branch that has no effect because the environment has no branches.
 * account NULL: not known yet. */
void unread_report_branch(struct api_call *call, const struct account *account);

/* The same, and reports an unknown x-trigger-api-version. Returns ERR_MEDIA_TYPE if the
 * body is encoded, ERR_INVALID if the request id is too long. */
enum err unread_check_headers(struct api_call *call);
