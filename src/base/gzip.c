/* gzip.c - one-shot compression, the last result remembered. */
#include "base/gzip.h"

#include <stdlib.h>
#include <zlib.h>

enum { WINDOW_AND_GZIP = 15 + 16, LEVEL = 1, MEMORY = 8 };

static struct {
    struct bytes *body, *packed; /* packed NULL: it was not worth it */
} last;

static struct bytes *pack(const struct bytes *body)
{
    z_stream stream = { 0 };
    if (deflateInit2(&stream, LEVEL, Z_DEFLATED, WINDOW_AND_GZIP, MEMORY,
                     Z_DEFAULT_STRATEGY) != Z_OK)
        return NULL;
    /* Only what is smaller is wanted, so that is all the room it gets. */
    struct bytes *packed = bytes_create_empty(body->len);
    stream.next_in = (unsigned char *)body->data;
    stream.avail_in = body->len;
    stream.next_out = (unsigned char *)packed->data;
    stream.avail_out = body->len;
    int result = deflate(&stream, Z_FINISH);
    packed->len = (uint32_t)stream.total_out;
    deflateEnd(&stream);
    if (result == Z_STREAM_END)
        return packed;
    bytes_unref(packed);
    return NULL;
}

struct bytes *gzip_shared(struct bytes *body)
{
    if (last.body != body) {
        gzip_forget();
        last.body = bytes_ref(body);
        last.packed = pack(body);
    }
    return bytes_ref(last.packed);
}

void gzip_forget(void)
{
    bytes_clear(&last.body);
    bytes_clear(&last.packed);
}
