/* gzip.c - compresses whole bodies, and remembers the last results. */
#include "api/realtime/gzip.h"

#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>

/* The longest body takes about a millisecond, the most that one unit of a turn's work
 * should take; a streaming compressor takes three. */
enum { LEVEL = 1 };
enum { KEPT_MAX = 32, KEPT_BYTES = 4 << 20 };

/* Newest first. */
static struct gzip_kept {
    struct bytes *body, *packed; /* packed NULL: it would not have been smaller */
} all[KEPT_MAX];
static size_t count, bytes;
static struct libdeflate_compressor *compressor; /* NULL until something is compressed */

static struct bytes *pack(const struct bytes *body)
{
    if (!compressor && !(compressor = libdeflate_alloc_compressor(LEVEL)))
        return NULL;
    /* A result is only used if it is smaller, so it gets no more space than that. */
    struct bytes *packed = bytes_create_empty(body->len);
    size_t len = libdeflate_gzip_compress(compressor, body->data, body->len, packed->data,
                                          body->len);
    if (!len)
        bytes_clear(&packed);
    else
        packed->len = (uint32_t)len;
    return packed;
}

static size_t cost_of(const struct gzip_kept *kept)
{
    return kept->body->len + (kept->packed ? kept->packed->len : 0);
}

static void drop_oldest(void)
{
    struct gzip_kept *oldest = &all[--count];
    bytes -= cost_of(oldest);
    bytes_clear(&oldest->body);
    bytes_clear(&oldest->packed);
}

static void keep(struct gzip_kept kept)
{
    bytes += cost_of(&kept);
    while (count && (count == KEPT_MAX || bytes > KEPT_BYTES))
        drop_oldest();
    memmove(all + 1, all, count++ * sizeof(*all));
    all[0] = kept;
}

struct bytes *gzip_shared(struct bytes *body)
{
    if (body->len < GZIP_WORTH || body->len > GZIP_MOST)
        return NULL;
    for (size_t i = 0; i < count; i++)
        if (all[i].body == body)
            return bytes_ref(all[i].packed);
    keep((struct gzip_kept){ bytes_ref(body), pack(body) });
    return bytes_ref(all[0].packed);
}

void gzip_forget(void)
{
    while (count)
        drop_oldest();
    libdeflate_free_compressor(compressor);
    compressor = NULL;
}
