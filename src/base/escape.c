/* escape.c - escapes text for JSON strings.
 *
 * Copies eight bytes at once while none of them needs an escape, and measures sixteen at
 * once. */
#include "base/escape.h"

#include <stdbool.h>

#include "base/eight.h"
#include "base/text.h"
#include "base/utf8.h"

enum {
    LONGEST = 6, /* the length of \u001f */
    AT_ONCE = 8,
    SIXTEEN = 16,
    COUNTED_MOST = 51, /* how often 5 may be added to a byte without overflow */
    HALF_LEAD = 0xED,  /* first byte of half a surrogate pair; HALF_LEN: bytes of it */
    HALF_LEN = 3,
    HALF_SECOND = 0x9F, /* the second byte of a half is above this */
};

static const char letters[256] = { ['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r',
                                   ['\t'] = 't', ['"'] = '"',  ['\\'] = '\\' };

/* Returns false if a byte may need an escape; Korean syllables may also have HALF_LEAD. */
static bool are_plain(const void *eight)
{
    uint64_t bytes = eight_bytes(eight);
    return !(eight_have_control(bytes) | eight_have(bytes, '"') | eight_have(bytes, '\\') |
             eight_have(bytes, HALF_LEAD));
}

static size_t width(unsigned char c)
{
    return letters[c] ? 2 : c < 0x20 ? LONGEST : 1;
}

/* Returns the number of bytes of the first character, which is escaped as one unit. */
static size_t unit_len(const char *at, const char *end)
{
    return utf8_is_half(at, (size_t)(end - at)) ? HALF_LEN : 1;
}

/* ---- measuring ---- */

/* Every text takes the same time: no branch depends on a character. */
typedef uint8_t sixteen __attribute__((vector_size(SIXTEEN)));

/* Returns how many bytes escaping adds to each of sixteen. next: the byte after each. */
static sixteen added_to(sixteen bytes, sixteen next)
{
    sixteen pair = (sixteen)(bytes == '"') | (sixteen)(bytes == '\\');
    sixteen control = (sixteen)(bytes < 0x20);
    sixteen letter = (sixteen)(bytes - '\b' < '\r' - '\b' + 1) & (sixteen)(bytes != '\v');
    sixteen half = (sixteen)(bytes == HALF_LEAD) & (sixteen)(next > HALF_SECOND);
    return (pair & 1) + (control & (LONGEST - 1)) - (letter & (LONGEST - 2)) +
           (half & (LONGEST - HALF_LEN));
}

/* Counts what escaping adds to times * sixteen bytes. times is at most COUNTED_MOST. Reads
 * one byte more. */
static size_t count_added(const char *at, size_t times)
{
    sixteen counts = { 0 }, bytes, next;
    size_t sum = 0;
    for (size_t i = 0; i < times; i++) {
        memcpy(&bytes, at + i * SIXTEEN, SIXTEEN);
        memcpy(&next, at + i * SIXTEEN + 1, SIXTEEN);
        counts += added_to(bytes, next);
    }
    for (size_t i = 0; i < SIXTEEN; i++)
        sum += counts[i];
    return sum;
}

size_t escape_len(struct slice text)
{
    size_t len = text.len, at = 0;
    while (text.len - at > SIXTEEN) {
        size_t times = (text.len - at - 1) / SIXTEEN;
        if (times > COUNTED_MOST)
            times = COUNTED_MOST;
        len += count_added(text.ptr + at, times);
        at += times * SIXTEEN;
    }
    for (; at < text.len; at++) {
        bool is_half = utf8_is_half(text.ptr + at, text.len - at);
        len += is_half ? LONGEST - HALF_LEN : width((unsigned char)text.ptr[at]) - 1;
    }
    return len;
}

size_t escape_len_within(struct bytes *owner, struct slice text)
{
    size_t before = (size_t)(text.ptr - owner->data);
    size_t after = owner->len - before - text.len;
    if (before + after > text.len)
        return escape_len(text);
    if (!owner->escaped)
        owner->escaped = (uint32_t)escape_len(bytes_slice(owner));
    return owner->escaped - escape_len((struct slice){ owner->data, before }) -
           escape_len((struct slice){ text.ptr + text.len, after });
}

/* ---- writing ---- */

static char *put_hex(char *out, unsigned char c)
{
    memcpy(out, "\\u00", 4);
    text_to_hex(&c, 1, out + 4); /* and writes a zero byte */
    return out + LONGEST;
}

static char *put_character(char *out, unsigned char c)
{
    char letter = letters[c];
    if (c < 0x20 && !letter)
        return put_hex(out, c);
    *out = '\\';
    out += letter != 0;
    *out = letter ? letter : (char)c;
    return out + 1;
}

static char *put_half(char *out, const char *half)
{
    uint32_t unit = utf8_half(half);
    unsigned char bytes[2] = { (unsigned char)(unit >> 8), (unsigned char)unit };
    memcpy(out, "\\u", 2);
    text_to_hex(bytes, 2, out + 2); /* and writes a zero byte */
    return out + LONGEST;
}

size_t escape_step(struct slice text, char *out, size_t room, size_t *taken)
{
    const char *at = text.ptr, *end = text.len ? at + text.len : at;
    char *start = out, *last = out + room;
    while (at < end && last - out > AT_ONCE * LONGEST) {
        if (end - at >= AT_ONCE && are_plain(at)) {
            memcpy(out, at, AT_ONCE);
            out += AT_ONCE;
            at += AT_ONCE;
            continue;
        }
        for (unsigned i = 0; i < AT_ONCE && at < end; i++) {
            size_t len = unit_len(at, end);
            out = len == 1 ? put_character(out, (unsigned char)*at) : put_half(out, at);
            at += len;
        }
    }
    *taken = (size_t)(at - text.ptr);
    return (size_t)(out - start);
}

size_t escape_find(struct slice text, size_t len, size_t *within)
{
    size_t at = 0;
    while (at < text.len) {
        if (len >= AT_ONCE && text.len - at >= AT_ONCE && are_plain(text.ptr + at)) {
            at += AT_ONCE;
            len -= AT_ONCE;
            continue;
        }
        size_t unit = unit_len(text.ptr + at, text.ptr + text.len);
        size_t next = unit == 1 ? width((unsigned char)text.ptr[at]) : LONGEST;
        if (len < next)
            break;
        at += unit;
        len -= next;
    }
    *within = len;
    return at;
}
