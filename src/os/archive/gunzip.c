/* gunzip.c - reads the header, compressed bytes and trailer of each gzip member in turn. */
#include "os/archive/gunzip.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

enum { RAW_WINDOW = -15, DEFLATED = 8 };

enum gzip_flag {
    HAS_CHECKSUM = 2,
    HAS_EXTRA = 4,
    HAS_NAME = 8,
    HAS_COMMENT = 16,
    RESERVED = 0xe0
};

void gunzip_init(struct gunzip *gunzip, int file, const atomic_bool *canceled)
{
    memset(gunzip, 0, sizeof(*gunzip));
    gunzip->file = file;
    gunzip->canceled = canceled;
    if (inflateInit2(&gunzip->stream, RAW_WINDOW) != Z_OK)
        mem_exhausted();
}

void gunzip_finish(struct gunzip *gunzip)
{
    inflateEnd(&gunzip->stream);
}

/* ---- packed bytes ---- */

static enum err gunzip_refuse(const char *reason, struct failure *why)
{
    return explain(why, ERR_INVALID, "cannot read the archive: %s", reason);
}

/* Makes at least one packed byte available. *ended: the file has no more. */
static enum err fill(struct gunzip *gunzip, bool *ended, struct failure *why)
{
    ssize_t got;
    *ended = false;
    if (gunzip->stream.avail_in)
        return OK;
    if (atomic_load(gunzip->canceled))
        return explain(why, ERR_CANCELED, "canceled");
    do
        got = pread(gunzip->file, gunzip->bytes, GUNZIP_READ_SIZE, gunzip->at);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return explain(why, ERR_INTERNAL, "cannot read the archive: %s", strerror(errno));
    gunzip->at += got;
    gunzip->packed += (uint64_t)got;
    gunzip->stream.next_in = gunzip->bytes;
    gunzip->stream.avail_in = (unsigned)got;
    *ended = !got;
    return OK;
}

static enum err take_byte(struct gunzip *gunzip, unsigned *byte, struct failure *why)
{
    bool ended;
    enum err err = fill(gunzip, &ended, why);
    if (err || ended)
        return err ? err : gunzip_refuse("it ends too early", why);
    *byte = *gunzip->stream.next_in++;
    gunzip->stream.avail_in--;
    return OK;
}

/* ---- headers ---- */

struct gzip_header {
    struct gunzip *gunzip;
    struct failure *why;
    unsigned len; /* bytes read */
    enum err err; /* of the first byte that could not be read */
};

/* Returns the next byte of the header; 0 after a failure. */
static unsigned take(struct gzip_header *header)
{
    unsigned byte = 0;
    if (!header->err && header->len++ == GUNZIP_HEADER_MAX)
        header->err = explain(header->why, ERR_INVALID,
                              "gzip header too long (max %d bytes)", GUNZIP_HEADER_MAX);
    if (!header->err)
        header->err = take_byte(header->gunzip, &byte, header->why);
    return header->err ? 0 : byte;
}

static void skip(struct gzip_header *header, unsigned len)
{
    while (len-- && !header->err)
        take(header);
}

static void skip_text(struct gzip_header *header)
{
    while (take(header) && !header->err)
        continue;
}

static enum err read_header(struct gunzip *gunzip, struct failure *why)
{
    struct gzip_header header = { .gunzip = gunzip, .why = why };
    bool is_gzip = take(&header) == 0x1f;
    is_gzip = take(&header) == 0x8b && is_gzip;
    is_gzip = take(&header) == DEFLATED && is_gzip;
    unsigned flags = take(&header);
    if (header.err == ERR_CANCELED || header.err == ERR_INTERNAL)
        return header.err;
    if (header.err || !is_gzip || flags & RESERVED)
        return explain(why, ERR_INVALID, "the archive is not a tar archive in gzip");
    skip(&header, 6); /* time, compression, system */
    if (flags & HAS_EXTRA) {
        unsigned low = take(&header);
        skip(&header, low | take(&header) << 8);
    }
    if (flags & HAS_NAME)
        skip_text(&header);
    if (flags & HAS_COMMENT)
        skip_text(&header);
    if (flags & HAS_CHECKSUM)
        skip(&header, 2);
    return header.err;
}

static enum err begin_member(struct gunzip *gunzip, struct failure *why)
{
    if (gunzip->members++ == GUNZIP_MEMBERS_MAX)
        return explain(why, ERR_INVALID, "too many gzip members in the archive (max %d)",
                       GUNZIP_MEMBERS_MAX);
    enum err err = read_header(gunzip, why);
    inflateReset(&gunzip->stream);
    gunzip->checksum = (uint32_t)crc32(0, NULL, 0);
    gunzip->size = 0;
    gunzip->inside = !err;
    return err;
}

static enum err take_number(struct gunzip *gunzip, uint32_t *number, struct failure *why)
{
    *number = 0;
    for (unsigned shift = 0; shift < 32; shift += 8) {
        unsigned byte = 0;
        enum err err = take_byte(gunzip, &byte, why);
        if (err)
            return err;
        *number |= (uint32_t)byte << shift;
    }
    return OK;
}

static enum err end_member(struct gunzip *gunzip, struct failure *why)
{
    uint32_t checksum, size = 0;
    gunzip->inside = false;
    enum err err = take_number(gunzip, &checksum, why);
    err = err ? err : take_number(gunzip, &size, why);
    if (err || (checksum == gunzip->checksum && size == gunzip->size))
        return err;
    return gunzip_refuse("its checksum does not match its content", why);
}

/* ---- content ---- */

static enum err unpack(struct gunzip *gunzip, char *to, size_t max, size_t *got,
                       struct failure *why)
{
    z_stream *stream = &gunzip->stream;
    bool ended;
    enum err err = fill(gunzip, &ended, why);
    if (err)
        return err;
    stream->next_out = (unsigned char *)to;
    stream->avail_out = max < GUNZIP_READ_SIZE ? (unsigned)max : GUNZIP_READ_SIZE;
    int status = inflate(stream, Z_NO_FLUSH);
    size_t len = (size_t)(stream->next_out - (unsigned char *)to);
    if (status == Z_MEM_ERROR)
        mem_exhausted();
    if (ended && !len && status != Z_STREAM_END)
        return gunzip_refuse("it ends too early", why);
    if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR)
        return gunzip_refuse("its compressed bytes are damaged", why);
    gunzip->checksum =
        (uint32_t)crc32(gunzip->checksum, (const unsigned char *)to, (unsigned)len);
    gunzip->size += (uint32_t)len;
    *got = len;
    return status == Z_STREAM_END ? end_member(gunzip, why) : OK;
}

enum err gunzip_read(struct gunzip *gunzip, char *to, size_t max, size_t *got,
                     struct failure *why)
{
    enum err err = OK;
    *got = 0;
    while (!err && !*got) {
        bool ended = false;
        if (gunzip->inside) {
            err = unpack(gunzip, to, max, got, why);
            continue;
        }
        err = fill(gunzip, &ended, why);
        if (!err && ended && gunzip->members)
            return OK;
        err = err ? err : begin_member(gunzip, why);
    }
    return err;
}
