/* gzip.h - compresses a body once for all clients that get it (RFC 1952, by libdeflate). */
#pragma once

#include "base/bytes.h"

/* Only bodies of this many bytes are compressed. A longer one takes too long for one turn
 * of the loop. */
enum { GZIP_WORTH = 1024, GZIP_MOST = 128 << 10 };

/* Returns the compressed body; the caller owns the reference. Returns NULL if the body has
 * another size, or would not become smaller. The last results are remembered, so that all
 * clients that get the same bytes share them, even if others get different bytes in
 * between. Loop thread only. */
struct bytes *gzip_shared(struct bytes *body);

/* Forgets the remembered results, at the end of a process or a test. */
void gzip_forget(void);
