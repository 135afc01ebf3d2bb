/* http_head.h - the head of an HTTP/1.1 reply: its status, and where the body ends. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"

struct http_head {
    int status;
    size_t len;          /* with the blank line, and interim replies before it */
    struct slice fields; /* the lines behind the status */
    size_t body_len;     /* by content-length */
    bool chunked;
    bool closes;
};

/* False while the head is not complete. Interim replies (1xx) are skipped. */
bool http_head_read(struct slice in, struct http_head *head);

/* The value of a field, without the space around it; ptr is NULL when there is none. The
 * name is in any case. */
struct slice http_head_field(const struct http_head *head, const char *name);

/* The next chunk of a body in front of the input: the bytes it takes, or 0 while it is not
 * complete. The last one is empty. */
size_t http_chunk_read(struct slice in, struct slice *content);
