/* gzip.h - compressing a body once for everybody who gets it (RFC 1952, by libdeflate). */
#pragma once

#include "base/bytes.h"

/* Bytes of a body from which it is compressed, and to which: more takes too long for one
 * turn of the loop. */
enum { GZIP_WORTH = 1024, GZIP_MOST = 128 << 10 };

/* The compressed body, a reference of the caller's; NULL when it is of another size or
 * would not be smaller. The answers for the bodies asked for last are remembered, so that
 * many who get the same bytes share them, whatever others get between; loop thread only. */
struct bytes *gzip_shared(struct bytes *body);

/* Forgets them; at the end of a process or a test. */
void gzip_forget(void);
