/* http_head.h - the head of an HTTP/1.1 response: its status, and where the body ends. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"

struct http_head {
    int status;
    size_t len;          /* with the blank line, and interim responses before it */
    struct slice fields; /* the lines after the status */
    size_t body_len;     /* from content-length */
    bool chunked;
    bool closes;
};

/* Returns false while the head is incomplete. Skips interim responses (1xx). */
bool http_head_read(struct slice in, struct http_head *head);

/* Returns the value of a field, trimmed; ptr is NULL if it is missing. The name may be in
 * any case. */
struct slice http_head_field(const struct http_head *head, const char *name);

/* Reads the next chunk at the front of the input. Returns its length, or 0 while it is
 * incomplete. The last chunk is empty. */
size_t http_chunk_read(struct slice in, struct slice *content);
