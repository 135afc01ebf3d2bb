/* gzip.h - compresses a body once for all clients that get it (RFC 1952, with
 * libdeflate). */
#pragma once

#include "base/bytes.h"

/* Only bodies of this size are compressed. A longer one takes too long for one turn of the
 * loop. */
enum { GZIP_WORTH = 1024, GZIP_MOST = 128 << 10 };

/* Returns the compressed body; the caller owns the reference. Returns NULL if the body has
 * another size or would not become smaller. Recent results are cached, so that all clients
 * that get the same bytes share them, even if others get different bytes in between. Loop
 * thread only. */
struct bytes *gzip_shared(struct bytes *body);

/* Empties the cache, at the end of a process or a test. */
void gzip_forget(void);
