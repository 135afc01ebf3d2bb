/* tar_maker.c - writes tar headers, and lets zlib compress them. */
#include "tests/support/world/tar_maker.h"

#include <assert.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include "tests/support/world/unit.h"

enum { BLOCK = 512, GZIP_WINDOW = 15 + 16 };

static void put(char *block, size_t at, const char *text)
{
    memcpy(block + at, text, strlen(text));
}

static void sign(char *block)
{
    unsigned sum = 0;
    char text[8];
    memset(block + 148, ' ', 8);
    for (int i = 0; i < BLOCK; i++)
        sum += (unsigned char)block[i];
    snprintf(text, sizeof(text), "%06o", sum);
    memcpy(block + 148, text, 7);
}

static void add_content(struct buf *tar, struct slice content)
{
    static const char zeros[BLOCK];
    buf_add(tar, content);
    buf_add(tar, (struct slice){ zeros, (BLOCK - content.len % BLOCK) % BLOCK });
}

/* In 12 bytes in base 256, which the highest bit marks. */
static void put_binary(char *field, uint64_t number)
{
    bool is_negative = number == UINT64_MAX;
    memset(field, is_negative ? 0xff : 0, 4);
    for (int i = 11; i >= 4; i--, number >>= 8)
        field[i] = (char)(number & 0xff);
    field[0] = (char)(is_negative ? 0xff : 0x80);
}

void tar_add(struct buf *tar, const struct tar_entry *entry)
{
    char block[BLOCK] = { 0 }, number[16];
    uint64_t size = entry->size ? entry->size : entry->content.len;
    assert_true(strlen(entry->name) <= 100);
    put(block, 0, entry->name);
    snprintf(number, sizeof(number), "%07o", entry->mode ? entry->mode : 0644);
    put(block, 100, number);
    put(block, 108, "0001750");
    put(block, 116, "0001750");
    snprintf(number, sizeof(number), "%011llo", (unsigned long long)size);
    put(block, 124, number);
    if (entry->binary_size)
        put_binary(block + 124, size);
    block[482] = entry->extended;
    put(block, 136, "14000000000");
    block[156] = entry->type ? entry->type : '0';
    if (entry->link)
        put(block, 157, entry->link);
    memcpy(block + 257, "ustar\00000", 8);
    sign(block);
    buf_add(tar, (struct slice){ block, BLOCK });
    add_content(tar, entry->content);
}

void tar_add_file(struct buf *tar, const char *name, const char *content)
{
    struct tar_entry entry = { .name = name, .content = slice_of(content) };
    tar_add(tar, &entry);
}

void tar_add_pax(struct buf *tar, struct slice record)
{
    char number[16];
    size_t rest = record.len + 2, len = rest; /* a space and a line feed */
    for (int i = 0; i < 3; i++)
        len = rest + (size_t)snprintf(number, sizeof(number), "%zu", len);
    struct buf text = { 0 };
    buf_print(&text, "%zu ", len);
    buf_add(&text, record);
    buf_add_char(&text, '\n');
    struct tar_entry entry = { .name = "pax", .type = 'x', .content = buf_slice(&text) };
    tar_add(tar, &entry);
    buf_finish(&text);
}

void tar_add_gnu_name(struct buf *tar, const char *name)
{
    struct tar_entry entry = { .name = "././@LongLink",
                               .type = 'L',
                               .content = { name, strlen(name) + 1 } };
    tar_add(tar, &entry);
}

void tar_end(struct buf *tar)
{
    static const char zeros[2 * BLOCK];
    buf_add(tar, (struct slice){ zeros, sizeof(zeros) });
}

void tar_gzip(struct slice tar, struct buf *packed)
{
    z_stream stream = { 0 };
    int status = deflateInit2(&stream, 6, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY);
    assert(status == Z_OK);
    size_t most = deflateBound(&stream, tar.len);
    stream.next_in = (unsigned char *)tar.ptr;
    stream.avail_in = (unsigned)tar.len;
    stream.next_out = (unsigned char *)buf_reserve(packed, most);
    stream.avail_out = (unsigned)most;
    status = deflate(&stream, Z_FINISH);
    assert(status == Z_STREAM_END);
    packed->len += most - stream.avail_out;
    deflateEnd(&stream);
}

struct bundle *tar_open(struct slice packed, const struct bundle_limits *limits)
{
    struct failure why;
    struct bundle *bundle = NULL;
    int file = memfd_create("bundle", MFD_CLOEXEC);
    ssize_t written = write(file, packed.ptr, packed.len);
    assert(written == (ssize_t)packed.len);
    enum err err = bundle_open_fd(file, limits, &bundle, &why);
    assert(!err);
    close(file);
    return bundle;
}
