/* head.h - writes the head of a request; private to client.
 *
 * No value from the caller can end a line: header injection is rejected, not escaped. */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "net/client/url.h"
#include "net/http/http.h"

struct head_request {
    const char *method;
    const struct url *url;
    struct slice target; /* begins with a slash */
    const struct http_header *headers;
    size_t header_count;
    bool has_body;
    uint64_t body_len;
    const char *upgrade; /* more header lines, complete; NULL: none, and keep-alive */
};

/* Returns true for a valid header name (RFC 9110 §5.6.2). */
bool head_is_token(struct slice text);

/* Returns true for a valid value: no control characters but the tab (RFC 9110 §5.5). */
bool head_is_value(struct slice text);

/* Returns true for a path with a query, of printable ASCII and without a fragment. */
bool head_is_target(struct slice text);

/* Appends request line, Host, the headers, Content-Length and the empty line. ERR_INVALID:
 * a part is malformed, or is a header that the client sends itself. The reason does not
 * repeat a value. */
enum err head_write(struct buf *out, const struct head_request *request,
                    struct failure *why);
