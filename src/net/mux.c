/* mux.c - writes and reads the messages of a multiplexed connection. */
#include "net/mux.h"

#include <string.h>

enum {
    ITEM_LEN = 1 + 4 + 2 + 4 + 4,
    SECOND_AT = ITEM_LEN - 4,
    KEPT_MAX = 8 * MUX_FULL,
};

static void put_number(unsigned char *at, uint32_t number, int len)
{
    for (int i = 0; i < len; i++)
        at[i] = (unsigned char)(number >> 8 * (len - 1 - i));
}

static uint32_t get_number(const char *at, int len)
{
    uint32_t number = 0;
    for (int i = 0; i < len; i++)
        number = number << 8 | (unsigned char)at[i];
    return number;
}

void mux_write_head(size_t len, unsigned char head[MUX_HEAD_LEN])
{
    put_number(head, (uint32_t)len, MUX_HEAD_LEN);
}

/* ---- items ---- */

size_t mux_begin(struct buf *items, const struct mux_item *item)
{
    size_t begin = items->len;
    unsigned char *at = (unsigned char *)buf_reserve(items, ITEM_LEN + item->first.len);
    at[0] = (unsigned char)item->kind;
    put_number(at + 1, item->id, 4);
    put_number(at + 5, item->status, 2);
    put_number(at + 7, (uint32_t)item->first.len, 4);
    put_number(at + SECOND_AT, 0, 4);
    items->len += ITEM_LEN;
    buf_add(items, item->first);
    return begin;
}

void mux_end(struct buf *items, size_t begin)
{
    unsigned char *at = (unsigned char *)items->ptr + begin;
    size_t first = get_number(items->ptr + begin + 7, 4);
    put_number(at + SECOND_AT, (uint32_t)(items->len - begin - ITEM_LEN - first), 4);
}

void mux_add(struct buf *items, const struct mux_item *item)
{
    size_t begin = mux_begin(items, item);
    buf_add(items, item->second);
    mux_end(items, begin);
}

static bool take_text(struct slice *items, size_t len, struct slice *text)
{
    if (items->len < len)
        return false;
    *text = (struct slice){ items->ptr, len };
    *items = slice_from(*items, len);
    return true;
}

bool mux_take(struct slice *items, struct mux_item *item)
{
    struct slice head;
    if (!take_text(items, ITEM_LEN, &head))
        return false;
    *item = (struct mux_item){ .kind = (enum mux_kind)head.ptr[0],
                               .id = get_number(head.ptr + 1, 4),
                               .status = (uint16_t)get_number(head.ptr + 5, 2) };
    return item->kind >= MUX_CALL && item->kind <= MUX_ALONE &&
           take_text(items, get_number(head.ptr + 7, 4), &item->first) &&
           take_text(items, get_number(head.ptr + SECOND_AT, 4), &item->second);
}

/* ---- messages ---- */

/* Returns the bytes of the message with its head, or of the head alone if it is incomplete;
 * 0: the message is too long. */
static size_t length_of(const struct mux_reader *reader, struct slice bytes)
{
    size_t most = reader->most ? reader->most : MUX_MESSAGE_MAX;
    if (bytes.len < MUX_HEAD_LEN)
        return MUX_HEAD_LEN;
    size_t len = get_number(bytes.ptr, MUX_HEAD_LEN);
    return len <= most ? MUX_HEAD_LEN + len : 0;
}

static bool is_whole(const struct mux_reader *reader, struct slice bytes)
{
    return bytes.len >= MUX_HEAD_LEN && bytes.len >= length_of(reader, bytes);
}

static enum mux_read give(const struct mux_reader *reader, struct slice whole,
                          struct slice *message)
{
    size_t len = length_of(reader, whole);
    if (!len)
        return MUX_FAULT;
    *message = (struct slice){ whole.ptr + MUX_HEAD_LEN, len - MUX_HEAD_LEN };
    return MUX_MESSAGE;
}

static void keep(struct mux_reader *reader, struct slice *bytes, size_t len)
{
    len = len < bytes->len ? len : bytes->len;
    buf_add(&reader->kept, (struct slice){ bytes->ptr, len });
    *bytes = slice_from(*bytes, len);
}

/* Completes the head, and then the message, that was begun. */
static void complete(struct mux_reader *reader, struct slice *bytes)
{
    for (int part = 0; part < 2; part++) {
        size_t len = length_of(reader, buf_slice(&reader->kept));
        if (len > reader->kept.len)
            keep(reader, bytes, len - reader->kept.len);
    }
}

enum mux_read mux_read(struct mux_reader *reader, struct slice *bytes,
                       struct slice *message)
{
    if (reader->used && reader->kept.capacity > KEPT_MAX)
        buf_finish(&reader->kept);
    if (reader->used)
        buf_clear(&reader->kept);
    reader->used = 0;
    if (!reader->kept.len && is_whole(reader, *bytes)) {
        struct slice whole = *bytes;
        *bytes = slice_from(*bytes, length_of(reader, whole));
        return give(reader, whole, message);
    }
    complete(reader, bytes);
    if (!is_whole(reader, buf_slice(&reader->kept)))
        return MUX_MORE;
    reader->used = reader->kept.len;
    return give(reader, buf_slice(&reader->kept), message);
}

void mux_reader_finish(struct mux_reader *reader)
{
    buf_finish(&reader->kept);
}
