/* http_check.c - checks each line of a head, then all headers together, then the target. */
#include "net/http/http_check.h"

#define FAULT(status, text) ((struct http_fault){ status, text })
#define FINE ((struct http_fault){ 0 })

bool http_list_has(struct slice list, const char *token)
{
    struct slice part;
    while (slice_split(&list, ',', &part))
        if (http_name_is(slice_trim(part), token))
            return true;
    return false;
}

/* Returns a line without its CR LF; absent if it does not end in one, or has another CR. */
static struct slice line_content(struct slice line)
{
    if (line.len < 2 || line.ptr[line.len - 2] != '\r')
        return (struct slice){ 0 };
    line.len -= 2;
    if (line.len && memchr(line.ptr, '\r', line.len))
        return (struct slice){ 0 };
    return line;
}

struct http_fault http_check_request_line(struct slice line, bool *http10)
{
    line = line_content(line);
    if (!line.ptr)
        return FAULT(400, "End the request line with CR LF");
    struct slice rest = line, method, target, version, none;
    if (!slice_split(&rest, ' ', &method) || !slice_split(&rest, ' ', &target) ||
        !slice_split(&rest, ' ', &version) || slice_split(&rest, ' ', &none) || !target.len)
        return FAULT(400, "Send METHOD target HTTP/1.1 with single spaces between");
    if (slice_is(method, "CONNECT"))
        return FAULT(400, "This is not a proxy: CONNECT is not possible");
    *http10 = slice_is(version, "HTTP/1.0");
    if (!*http10 && !slice_is(version, "HTTP/1.1"))
        return FAULT(400, "Use HTTP/1.1");
    return FINE;
}

struct http_fault http_check_line_begin(char first)
{
    if (first == ' ' || first == '\t')
        return FAULT(400, "Send each header in one line: folded lines are obsolete");
    if (first == ':')
        return FAULT(400, "A header has no name");
    return FINE;
}

struct http_fault http_check_header_line(struct slice line)
{
    return line_content(line).ptr ? FINE : FAULT(400, "End each header line with CR LF");
}

static bool is_host_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c && strchr("-._~!$&'()*+;=%[]:", c));
}

static bool is_host(struct slice host)
{
    for (size_t i = 0; i < host.len; i++)
        if (!is_host_char(host.ptr[i]))
            return false;
    return host.len > 0;
}

struct http_fault http_check_headers(struct http_head *head,
                                     const struct http_header *headers, size_t count)
{
    unsigned hosts = 0, lengths = 0, codings = 0, credentials = 0;
    bool connection_upgrade = false, upgrade_websocket = false;
    for (size_t i = 0; i < count; i++) {
        struct slice name = headers[i].name, value = headers[i].value;
        if (http_name_is(name, "host")) {
            if (hosts++ || !is_host(value))
                return FAULT(400, "Send exactly one Host header with a host name");
        } else if (http_name_is(name, "content-length")) {
            if (lengths++)
                return FAULT(400, "Send one Content-Length header");
        } else if (http_name_is(name, "transfer-encoding")) {
            if (codings++ || head->http10 || !http_name_is(value, "chunked"))
                return FAULT(400, "Send one Transfer-Encoding: chunked, in HTTP/1.1, "
                                  "or a Content-Length");
        } else if (http_name_is(name, "authorization")) {
            if (credentials++)
                return FAULT(400, "Send one Authorization header");
        } else if (http_name_is(name, "expect")) {
            if (!http_name_is(value, "100-continue"))
                return FAULT(417, "Only Expect: 100-continue is supported");
            head->expects_continue = !head->http10;
        } else if (http_name_is(name, "connection")) {
            connection_upgrade |= http_list_has(value, "upgrade");
        } else if (http_name_is(name, "upgrade")) {
            upgrade_websocket |= http_list_has(value, "websocket");
        }
    }
    if (!hosts && !head->http10)
        return FAULT(400, "Send exactly one Host header with a host name");
    if (lengths && codings)
        return FAULT(400, "Send Content-Length or Transfer-Encoding, not both");
    head->has_length = lengths;
    head->chunked = codings;
    head->wants_upgrade = connection_upgrade && upgrade_websocket && !head->http10;
    return FINE;
}

/* Cuts "http://authority" off the front of the target. */
static bool cut_authority(struct slice *target, struct slice *authority)
{
    size_t scheme = strlen("http://");
    if (target->len > scheme && strncasecmp(target->ptr, "https://", scheme + 1) == 0)
        scheme++;
    else if (target->len <= scheme || strncasecmp(target->ptr, "http://", scheme) != 0)
        return false;
    struct slice rest = slice_from(*target, scheme);
    size_t len = 0;
    while (len < rest.len && rest.ptr[len] != '/' && rest.ptr[len] != '?')
        len++;
    *authority = (struct slice){ rest.ptr, len };
    *target = slice_from(rest, len);
    return is_host(*authority);
}

struct http_fault http_check_target(struct slice target, bool is_options,
                                    struct slice *path, struct slice *query,
                                    struct slice *authority)
{
    *authority = (struct slice){ 0 };
    if (memchr(target.ptr, '#', target.len))
        return FAULT(400, "Leave the fragment (#...) out of the target");
    if (slice_is(target, "*")) {
        *path = target;
        *query = (struct slice){ 0 };
        return is_options ? FINE : FAULT(400, "The target * is for OPTIONS only");
    }
    if (target.ptr[0] != '/' && !cut_authority(&target, authority))
        return FAULT(400, "Send the path, beginning with a slash, as the target");
    struct slice rest = target;
    slice_split(&rest, '?', path);
    *query = rest;
    if (!path->len)
        *path = SLICE("/");
    return FINE;
}
