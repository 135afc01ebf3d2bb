/* request_log.h - logs responses that report a fault: route, status, duration, for whom.
 *
 *     event=request method=POST route=/api/v1/tasks/:/trigger status=400 us=81
 *     project=proj_… env=prod request_id=… client=203.0.113.9
 *
 * The route is the table's pattern, never what the client wrote. Query, body and credential
 * are not logged. A kind is a route with a status. At most ten lines of a kind are written
 * per minute, and one for a refused credential. Further ones are counted, and the count is
 * logged at the end of the minute. */
#pragma once

#include "api/request/call.h"

enum request_log_mode { REQUEST_LOG_OFF, REQUEST_LOG_ERRORS, REQUEST_LOG_ALL };

struct request_log;

struct request_log *request_log_create(struct loop *loop, enum request_log_mode mode);
void request_log_set_mode(struct request_log *log, enum request_log_mode mode);
/* Ignores NULL. */
void request_log_destroy(struct request_log *log);

/* Logs the response to a call. Call it before the reply, which ends the call. Costs one
 * comparison if nothing is logged. */
void request_log_answer(const struct api_call *call, int status);

/* The handler's on_refused: logs a request that http has refused; owner is the api. A call
 * that has begun gets on_gone; its own response is then not logged. */
void request_log_refusal(void *owner, const struct exchange *x, int status);

/* Logs a WebSocket that is closed with this code because its first message had no token, or
 * an invalid one. */
void request_log_socket(struct request_log *log, unsigned code);

/* Writes who sent a call, for audits: the id of the key or token as token lists show it,
 * and its owner. Reveals nothing of the secret. */
enum { ACTOR_TEXT = 160 };
void request_log_actor(const struct api_call *call, char out[ACTOR_TEXT]);
