/* buf.c - a buffer that doubles; numbers and JSON strings are written straight into it. */
#include "base/buf.h"

#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/escape.h"
#include "base/mem.h"
#include "base/text.h"

enum {
    FIRST_CAPACITY = 256,
    ESCAPE_PIECE = 512,
};

void buf_finish(struct buf *buf)
{
    free(buf->ptr);
    *buf = (struct buf){ 0 };
}

void buf_clear(struct buf *buf)
{
    buf->len = 0;
}

char *buf_reserve(struct buf *buf, size_t extra)
{
    if (extra > buf->capacity - buf->len || !buf->ptr) {
        size_t capacity = buf->capacity ? buf->capacity : FIRST_CAPACITY;
        assert(extra < SIZE_MAX / 4 && buf->len < SIZE_MAX / 4);
        while (capacity - buf->len < extra)
            capacity *= 2;
        buf->ptr = mem_resize(buf->ptr, capacity);
        buf->capacity = capacity;
    }
    return buf->ptr + buf->len;
}

void buf_add(struct buf *buf, struct slice content)
{
    if (!content.len)
        return;
    memcpy(buf_reserve(buf, content.len), content.ptr, content.len);
    buf->len += content.len;
}

void buf_add_char(struct buf *buf, char c)
{
    *buf_reserve(buf, 1) = c;
    buf->len++;
}

void buf_add_text(struct buf *buf, const char *text)
{
    buf_add(buf, slice_of(text));
}

void buf_add_number(struct buf *buf, int64_t number)
{
    char digits[20];
    char *at = digits + sizeof(digits);
    uint64_t rest = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    do {
        *--at = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest);
    if (number < 0)
        *--at = '-';
    buf_add(buf, (struct slice){ at, (size_t)(digits + sizeof(digits) - at) });
}

void buf_print(struct buf *buf, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    char *place = buf_reserve(buf, 1);
    int len = vsnprintf(place, buf->capacity - buf->len, format, args);
    va_end(args);
    assert(len >= 0);
    if ((size_t)len >= buf->capacity - buf->len) {
        place = buf_reserve(buf, (size_t)len + 1);
        vsnprintf(place, (size_t)len + 1, format, again);
    }
    va_end(again);
    buf->len += (size_t)len;
}

void buf_add_escaped(struct buf *buf, struct slice content)
{
    while (content.len) {
        size_t taken, most = content.len < ESCAPE_PIECE ? content.len : ESCAPE_PIECE;
        char *place = buf_reserve(buf, most + ESCAPE_ROOM_LEAST);
        buf->len += escape_step(content, place, buf->capacity - buf->len, &taken);
        content = slice_from(content, taken);
    }
}

void buf_add_json(struct buf *buf, struct slice content)
{
    buf_reserve(buf, content.len + 2);
    buf_add_char(buf, '"');
    buf_add_escaped(buf, content);
    buf_add_char(buf, '"');
}

void buf_add_json_time(struct buf *buf, int64_t unix_ms)
{
    char time[TIME_TEXT_LEN + 1];
    text_from_time(unix_ms, time);
    buf_add_char(buf, '"');
    buf_add(buf, (struct slice){ time, TIME_TEXT_LEN });
    buf_add_char(buf, '"');
}

/* Returns the lowest printf precision that reads back as the same double. Fifteen digits
 * hold every shorter decimal, except subnormal numbers. */
static int shortest_precision(double number)
{
    char text[40];
    int precision = fpclassify(number) == FP_SUBNORMAL ? 0 : 14;
    for (; precision < 16; precision++) {
        snprintf(text, sizeof(text), "%.*e", precision, number);
        if (strtod(text, NULL) == number)
            break;
    }
    return precision;
}

/* Writes digits and point as JavaScript does: the first exponents are 1e21 and 1e-7. */
static void add_decimal(struct buf *buf, const char *digits, int count, int exponent)
{
    int point = exponent + 1; /* digits before the point */
    if (point > 21 || point < -5) {
        buf_add_char(buf, digits[0]);
        if (count > 1)
            buf_add_char(buf, '.');
        buf_add(buf, (struct slice){ digits + 1, (size_t)count - 1 });
        buf_print(buf, "e%+d", exponent);
        return;
    }
    if (point <= 0)
        buf_add(buf, SLICE("0."));
    for (int i = point; i < 0; i++)
        buf_add_char(buf, '0');
    for (int i = 0; i < count; i++) {
        if (i == point && point > 0)
            buf_add_char(buf, '.');
        buf_add_char(buf, digits[i]);
    }
    for (int i = count; i < point; i++)
        buf_add_char(buf, '0');
}

void buf_add_json_double(struct buf *buf, double number)
{
    assert(isfinite(number));
    if (signbit(number))
        buf_add_char(buf, '-');
    number = fabs(number);
    if (number < 1e15 && number == floor(number)) {
        buf_add_number(buf, (int64_t)number);
        return;
    }
    char text[40]; /* d.ddde+xx */
    int precision = shortest_precision(number);
    snprintf(text, sizeof(text), "%.*e", precision, number);
    char *e = strchr(text, 'e');
    int exponent = (int)strtol(e + 1, NULL, 10);

    char digits[20];
    int count = 0;
    for (const char *at = text; at < e; at++)
        if (isdigit((unsigned char)*at)) /* skips the point, a comma in some locales */
            digits[count++] = *at;
    while (count > 1 && digits[count - 1] == '0')
        count--;
    add_decimal(buf, digits, count, exponent);
}

void buf_add_size(struct buf *buf, size_t bytes)
{
    if (bytes < 1000 * 1000)
        buf_print(buf, "%.1f kB", (double)bytes / 1e3);
    else
        buf_print(buf, "%.1f MB", (double)bytes / 1e6);
}

void buf_add_cut(struct buf *buf, size_t bytes)
{
    buf_add_text(buf, "… (cut, ");
    buf_add_size(buf, bytes);
    buf_add_char(buf, ')');
}

void buf_drop(struct buf *buf, size_t count)
{
    assert(count <= buf->len);
    buf->len -= count;
    if (buf->len)
        memmove(buf->ptr, buf->ptr + count, buf->len);
}

struct bytes *buf_to_bytes(const struct buf *buf)
{
    return bytes_create(buf_slice(buf));
}

struct bytes *buf_take(struct buf *buf)
{
    struct bytes *bytes = bytes_take(buf->ptr, buf->len);
    assert(!buf->rope);
    *buf = (struct buf){ 0 };
    return bytes;
}
