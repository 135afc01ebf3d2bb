/* http_check.h - rejects what HTTP/1.1 forbids and llhttp accepts (RFC 9112); pure.
 *
 * The checks hold for llhttp 8 and 9. A proxy in front of us may interpret an ambiguous
 * request differently (request smuggling). So a request is rejected, and its connection
 * closed, if there is any doubt about where it ends, what it is for, or to whom it is
 * addressed. */
#pragma once

#include <string.h>
#include <strings.h>

#include "net/http/http.h"

struct http_fault {
    int status;       /* 0: no fault */
    const char *text; /* for the client: what to do */
};

/* Checks "METHOD target HTTP/1.x" with its CR LF. */
struct http_fault http_check_request_line(struct slice line, bool *http10);

/* Checks the first byte of a header line, or of a trailer line. */
struct http_fault http_check_line_begin(char first);

/* Checks a header line with its CR LF, or the empty line at the end. */
struct http_fault http_check_header_line(struct slice line);

/* The meaning of all headers together. */
struct http_head {
    bool http10;
    bool has_length, chunked, expects_continue, wants_upgrade;
};
struct http_fault http_check_headers(struct http_head *head,
                                     const struct http_header *headers, size_t count);

/* Splits the target into path and query. authority is present for the absolute form, and
 * then replaces the Host header (RFC 9112 §3.2.2). */
struct http_fault http_check_target(struct slice target, bool is_options,
                                    struct slice *path, struct slice *query,
                                    struct slice *authority);

/* Returns true if the comma-separated list has the token, ignoring case. */
bool http_list_has(struct slice list, const char *token);

/* Compares ASCII, ignoring case. Inline, because a compiler that knows the length of text
 * rejects nearly every name by its length alone. */
static inline bool http_name_is(struct slice name, const char *text)
{
    return name.len == strlen(text) && strncasecmp(name.ptr, text, name.len) == 0;
}
