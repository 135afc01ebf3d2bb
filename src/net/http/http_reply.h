/* http_reply.h - replies that the HTTP layer itself makes; private to http. */
#pragma once

#include "net/http/http_request.h"

/* Counts a response with this status. */
void http_reply_count(const struct exchange *x, int status);

/* Replies {"error": "<text>"} with the status; headers as for http_reply. */
void http_reply_refusal(struct exchange *x, struct http_fault fault, struct slice headers);

/* The same for an exchange that cannot continue: the connection closes. Does not end the
 * exchange. */
void http_reply_write_refusal(struct request *request, struct http_fault fault);

/* Writes a reply after which the connection closes. Does not end the exchange. */
void http_reply_write_early(struct request *request, int status, struct slice headers,
                            struct slice body);

/* Writes "100 Continue": the client may send the body. */
void http_reply_write_continue(struct request *request);
