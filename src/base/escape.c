/* escape.c - eight bytes at once as long as nothing among them is escaped, and sixteen where
 * they are only measured. */
#include "base/escape.h"

#include <stdbool.h>

#include "base/eight.h"
#include "base/text.h"

enum {
    LONGEST = 6, /* \u001f */
    AT_ONCE = 8,
    SIXTEEN = 16,
    COUNTED_MOST = 51, /* times that five may be added to a byte */
};

static const char letters[256] = { ['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r',
                                   ['\t'] = 't', ['"'] = '"',  ['\\'] = '\\' };

static bool are_plain(const void *eight)
{
    uint64_t bytes = eight_bytes(eight);
    return !(eight_have_control(bytes) | eight_have(bytes, '"') | eight_have(bytes, '\\'));
}

static size_t width(unsigned char c)
{
    return letters[c] ? 2 : c < 0x20 ? LONGEST : 1;
}

/* ---- measuring ---- */

/* Every text takes the same time, whatever is in it: no branch looks at a character. */
typedef uint8_t sixteen __attribute__((vector_size(SIXTEEN)));

/* What escaping adds to each of sixteen bytes. */
static sixteen added_to(sixteen bytes)
{
    sixteen pair = (sixteen)(bytes == '"') | (sixteen)(bytes == '\\');
    sixteen control = (sixteen)(bytes < 0x20);
    sixteen letter = (sixteen)(bytes - '\b' < '\r' - '\b' + 1) & (sixteen)(bytes != '\v');
    return (pair & 1) + (control & (LONGEST - 1)) - (letter & (LONGEST - 2));
}

/* Counts what escaping adds to at most COUNTED_MOST times sixteen bytes. */
static size_t count_added(const char *at, size_t times)
{
    sixteen counts = { 0 }, bytes;
    size_t sum = 0;
    for (size_t i = 0; i < times; i++) {
        memcpy(&bytes, at + i * SIXTEEN, SIXTEEN);
        counts += added_to(bytes);
    }
    for (size_t i = 0; i < SIXTEEN; i++)
        sum += counts[i];
    return sum;
}

size_t escape_len(struct slice text)
{
    size_t len = text.len, at = 0;
    while (text.len - at >= SIXTEEN) {
        size_t times = (text.len - at) / SIXTEEN;
        if (times > COUNTED_MOST)
            times = COUNTED_MOST;
        len += count_added(text.ptr + at, times);
        at += times * SIXTEEN;
    }
    for (; at < text.len; at++)
        len += width((unsigned char)text.ptr[at]) - 1;
    return len;
}

size_t escape_len_within(struct bytes *owner, struct slice text)
{
    size_t before = (size_t)(text.ptr - owner->data);
    size_t behind = owner->len - before - text.len;
    if (before + behind > text.len)
        return escape_len(text);
    if (!owner->escaped)
        owner->escaped = (uint32_t)escape_len(bytes_slice(owner));
    return owner->escaped - escape_len((struct slice){ owner->data, before }) -
           escape_len((struct slice){ text.ptr + text.len, behind });
}

/* ---- writing ---- */

static char *put_hex(char *out, unsigned char c)
{
    memcpy(out, "\\u00", 4);
    text_to_hex(&c, 1, out + 4); /* with a zero behind */
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
        for (unsigned i = 0; i < AT_ONCE && at < end; i++)
            out = put_character(out, (unsigned char)*at++);
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
        size_t next = width((unsigned char)text.ptr[at]);
        if (len < next)
            break;
        at++;
        len -= next;
    }
    *within = len;
    return at;
}
