/* head.c - checks the head of a request, then writes it. */
#include "net/client/head.h"

#include "net/http/http_check.h"

/* Headers for framing and for the connection, which the client sends itself. */
static const char *const ours[] = { "host",
                                    "content-length",
                                    "transfer-encoding",
                                    "trailer",
                                    "connection",
                                    "keep-alive",
                                    "upgrade",
                                    "expect",
                                    "te",
                                    "sec-websocket-key",
                                    "sec-websocket-version",
                                    "sec-websocket-extensions",
                                    "sec-websocket-protocol",
                                    "sec-websocket-accept" };

bool head_is_token(struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        bool fine = (c >= 'a' && c <= 'z') || c == '-' || (c >= 'A' && c <= 'Z') ||
                    (c >= '0' && c <= '9') || (c && strchr("!#$%&'*+.^_`|~", c));
        if (!fine)
            return false;
    }
    return text.len > 0;
}

bool head_is_value(struct slice text)
{
    bool fine = true;
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        fine &= (c >= 0x20 || c == '\t') && c != 0x7F; /* without a branch */
    }
    return fine;
}

bool head_is_target(struct slice text)
{
    if (!text.len || text.ptr[0] != '/')
        return false;
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] <= ' ' || text.ptr[i] >= 0x7F || text.ptr[i] == '#')
            return false;
    return true;
}

static bool is_ours(struct slice name)
{
    for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
        if (http_name_is(name, ours[i]))
            return true;
    return false;
}

static enum err judge(const struct head_request *request, struct failure *why)
{
    if (!head_is_token(slice_of(request->method)))
        return explain(why, ERR_INVALID, "the request method is not a valid token");
    if (!head_is_target(request->target))
        return explain(why, ERR_INVALID,
                       "the target of the request is not a path of printable ASCII");
    for (size_t i = 0; i < request->header_count; i++) {
        const struct http_header *header = &request->headers[i];
        if (!head_is_token(header->name))
            return explain(why, ERR_INVALID, "a header name is not a valid token");
        if (!head_is_value(header->value))
            return explain(why, ERR_INVALID,
                           "the header %.*s has control characters in its value",
                           SLICE_ARG(header->name));
        if (is_ours(header->name))
            return explain(why, ERR_INVALID, "the header %.*s is set by the client itself",
                           SLICE_ARG(header->name));
    }
    return OK;
}

static bool names_agent(const struct head_request *request)
{
    for (size_t i = 0; i < request->header_count; i++)
        if (http_name_is(request->headers[i].name, "user-agent"))
            return true;
    return false;
}

enum err head_write(struct buf *out, const struct head_request *request,
                    struct failure *why)
{
    enum err err = judge(request, why);
    if (err)
        return err;
    buf_print(out, "%s %s", request->method, request->url->prefix);
    buf_add(out, request->target);
    buf_add(out, SLICE(" HTTP/1.1\r\nhost: "));
    url_add_authority(out, request->url);
    buf_add(out, SLICE("\r\n"));
    if (!names_agent(request))
        buf_add(out, SLICE("user-agent: runcast/" RUNCAST_VERSION "\r\n"));
    for (size_t i = 0; i < request->header_count; i++) {
        buf_add(out, request->headers[i].name);
        buf_add(out, SLICE(": "));
        buf_add(out, request->headers[i].value);
        buf_add(out, SLICE("\r\n"));
    }
    if (request->has_body)
        buf_print(out, "content-length: %llu\r\n", (unsigned long long)request->body_len);
    buf_add_text(out, request->upgrade ? request->upgrade : "");
    buf_add(out, SLICE("\r\n"));
    return OK;
}
