/* buf.h - a growing byte buffer: append, print, JSON.
 *
 * The zero value is an empty buffer. Its capacity doubles and never shrinks before
 * buf_finish. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/slice.h"

struct rope;

struct buf {
    char *ptr;
    size_t len;
    size_t capacity;
    struct rope *rope; /* the rope whose text this is (rope.h); NULL: none */
};

void buf_finish(struct buf *buf);

/* Empties the buffer and keeps the memory. */
void buf_clear(struct buf *buf);

/* Makes room for extra bytes after len and returns a pointer to it. */
char *buf_reserve(struct buf *buf, size_t extra);

void buf_add(struct buf *buf, struct slice content);
void buf_add_char(struct buf *buf, char c);
void buf_add_text(struct buf *buf, const char *text);
void buf_add_number(struct buf *buf, int64_t number);
__attribute__((format(printf, 2, 3))) void buf_print(struct buf *buf, const char *format,
                                                     ...);

/* Appends a JSON string with its quotes (RFC 8259 §7). The content stays UTF-8. */
void buf_add_json(struct buf *buf, struct slice content);

/* The same without the quotes. */
void buf_add_escaped(struct buf *buf, struct slice content);

/* Appends "2024-01-31T09:00:00.000Z", with quotes. */
void buf_add_json_time(struct buf *buf, int64_t unix_ms);

/* Appends the shortest decimal that reads back as number, which must be finite. */
void buf_add_json_double(struct buf *buf, double number);

/* Removes count bytes from the front. */
void buf_drop(struct buf *buf, size_t count);

static inline struct slice buf_slice(const struct buf *buf)
{
    return (struct slice){ buf->ptr ? buf->ptr : "", buf->len };
}

/* Returns a copy of the content, with one reference. */
struct bytes *buf_to_bytes(const struct buf *buf);

/* Appends a size like "1.3 MB". */
void buf_add_size(struct buf *buf, size_t bytes);

/* Appends the note that ends a truncated text, like "… (cut, 1.3 MB)". bytes: the size of
 * the whole text. */
void buf_add_cut(struct buf *buf, size_t bytes);

/* Returns the content itself, with one reference, and leaves the buffer without memory. */
struct bytes *buf_take(struct buf *buf);
