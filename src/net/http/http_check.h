/* http_check.h - what HTTP/1.1 forbids and llhttp, in one of the versions 8 and 9, lets through
 * (RFC 9112); pure.
 *
 * Whoever stands in front of us may understand an ambiguous request in another way than
 * we do (request smuggling): so every doubt about where a request ends, what it is for or
 * whom it is for is refused, and the connection ends. */
#pragma once

#include <string.h>
#include <strings.h>

#include "net/http/http.h"

struct http_fault {
    int status;       /* 0: none */
    const char *text; /* for the client: what to do */
};

/* "METHOD target HTTP/1.x" with its CR LF. */
struct http_fault http_check_request_line(struct slice line, bool *http10);

/* The first byte of a header line, or of a line of the trailers. */
struct http_fault http_check_line_begin(char first);

/* A header line with its CR LF, or the empty line at the end. */
struct http_fault http_check_header_line(struct slice line);

/* What the headers say, all of them together. */
struct http_head {
    bool http10;
    bool has_length, chunked, expects_continue, wants_upgrade;
};
struct http_fault http_check_headers(struct http_head *head,
                                     const struct http_header *headers, size_t count);

/* Splits the target into path and query. authority is present in the absolute form, and
 * counts instead of the Host header then (RFC 9112 §3.2.2). */
struct http_fault http_check_target(struct slice target, bool is_options,
                                    struct slice *path, struct slice *query,
                                    struct slice *authority);

/* True when the comma-separated list has the token, without regard to case. */
bool http_list_has(struct slice list, const char *token);

/* ASCII without regard to case. Here, because the length of a text that is known to the compiler
 * rules out nearly every name. */
static inline bool http_name_is(struct slice name, const char *text)
{
    return name.len == strlen(text) && strncasecmp(name.ptr, text, name.len) == 0;
}
