/* request_log.h - a line of the log for each answer that tells of a fault: which route, which
 * status, how long it took, for whom.
 *
 *     event=request method=POST route=/api/v1/tasks/:/trigger status=400 us=81
 *     project=proj_… env=prod request_id=… client=203.0.113.9
 *
 * The route is the pattern of the table, never what the client wrote there; no query, no body,
 * no credential. Of one kind, a route with a status, ten lines are written in a minute, and
 * of one refused credential one; what comes above it is counted, and told in one line when the
 * minute is over. */
#pragma once

#include "api/request/call.h"

enum request_log_mode { REQUEST_LOG_OFF, REQUEST_LOG_ERRORS, REQUEST_LOG_ALL };

struct request_log;

struct request_log *request_log_create(struct loop *loop, enum request_log_mode mode);
void request_log_set_mode(struct request_log *log, enum request_log_mode mode);
/* NULL is fine. */
void request_log_destroy(struct request_log *log);

/* Of a call that is answered with this status: said before the reply, which ends the call.
 * Costs a comparison when nobody wants to know. */
void request_log_answer(const struct api_call *call, int status);

/* Of a request that http has refused, as its handler's on_refused: owner is the api. A call
 * that has begun is told so by on_gone, and its own answer is no line any more. */
void request_log_refusal(void *owner, const struct exchange *x, int status);

/* Of a WebSocket that is closed with this code, because its first message brought no token, or
 * one that is not valid. */
void request_log_socket(struct request_log *log, unsigned code);

/* Who is behind a call, for audits: the id of the key or token that token lists show, and whose
 * it is. Nothing of the secret. */
enum { ACTOR_TEXT = 160 };
void request_log_actor(const struct api_call *call, char out[ACTOR_TEXT]);
