/* gzip.h - compressing a body once for everybody who gets it (RFC 1952, by zlib). */
#pragma once

#include "base/bytes.h"

enum { GZIP_WORTH = 1024 }; /* bytes from which a body is compressed */

/* The compressed body, a reference of the caller's; NULL when it would not be smaller. The
 * answer for the body asked for last is remembered, so that many who get the same bytes in
 * one turn share them; loop thread only. */
struct bytes *gzip_shared(struct bytes *body);

/* Forgets it; at the end of a process or a test. */
void gzip_forget(void);
