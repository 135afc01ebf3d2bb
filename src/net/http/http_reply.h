/* http_reply.h - replies of this layer itself; private to http. */
#pragma once

#include "net/http/http_request.h"

/* The exchange was answered with this status. */
void http_reply_count(const struct exchange *x, int status);

/* {"error": "<text>"} with the status, and headers as http_reply takes them. */
void http_reply_refusal(struct exchange *x, struct http_fault fault, struct slice headers);

/* The same where the exchange cannot go on: the connection says that it closes. Ends
 * nothing. */
void http_reply_write_refusal(struct request *request, struct http_fault fault);

/* As http_reply writes it, where the connection ends behind it. Ends nothing. */
void http_reply_write_early(struct request *request, int status, struct slice headers,
                            struct slice body);

/* "100 Continue": the client may send the body. */
void http_reply_write_continue(struct request *request);
