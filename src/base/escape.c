/* escape.c - eight bytes at once as long as nothing among them is escaped. */
#include "base/escape.h"

#include <stdbool.h>

#include "base/eight.h"
#include "base/text.h"

enum {
    LONGEST = 6, /* \u001f */
    AT_ONCE = 8,
    COUNTED_MOST = 127, /* times that two may be added to a byte */
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

/* A one in each byte that is c: unlike eight_have this counts. */
static uint64_t ones_where(uint64_t bytes, unsigned char c)
{
    const uint64_t rest = ~eight_tops;
    uint64_t zero = bytes ^ eight_ones * c;
    return ~(((zero & rest) + rest) | zero | rest) >> 7;
}

/* The sum of its bytes. */
static size_t sum(uint64_t counts)
{
    const uint64_t low = UINT64_C(0x00ff00ff00ff00ff);
    uint64_t pairs = (counts & low) + (counts >> 8 & low);
    return pairs * UINT64_C(0x0001000100010001) >> 48;
}

/* Quotes and backslashes from *at on, up to the first eight with a control character. */
static size_t count_pairs(const char **at, const char *end)
{
    size_t found = 0;
    bool stopped = false;
    while (end - *at >= AT_ONCE && !stopped) {
        uint64_t counts = 0;
        for (unsigned i = 0; i < COUNTED_MOST && end - *at >= AT_ONCE; i++) {
            uint64_t bytes = eight_bytes(*at);
            stopped = eight_have_control(bytes);
            if (stopped)
                break;
            counts += ones_where(bytes, '"') + ones_where(bytes, '\\');
            *at += AT_ONCE;
        }
        found += sum(counts);
    }
    return found;
}

size_t escape_len(struct slice text)
{
    if (!text.len)
        return 0;
    const char *at = text.ptr, *end = at + text.len;
    size_t len = text.len;
    while (at < end) {
        len += count_pairs(&at, end);
        for (unsigned i = 0; i < AT_ONCE && at < end; i++)
            len += width((unsigned char)*at++) - 1;
    }
    return len;
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
