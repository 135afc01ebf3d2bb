/* head.h - the head of a request as it is sent; private to client.
 *
 * Nothing that a caller gives can end a line: a header injected so is refused, not escaped. */
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
    const char *upgrade; /* more headers, complete lines of ours; NULL: none, and the
                            connection is kept */
};

/* A word as names of headers are (RFC 9110 §5.6.2). */
bool head_is_token(struct slice text);

/* Appends request line, Host, the headers, Content-Length and the empty line. ERR_INVALID:
 * something is not well-formed, or is a header that the client sends by itself. The reason
 * does not repeat a value. */
enum err head_write(struct buf *out, const struct head_request *request,
                    struct failure *why);
