/* scan_text.c - decodes the characters between the quotes of a JSON string.
 *
 *   "I am \ud83d"     ─►  I am ED A0 BD        half of a pair, in WTF-8
 *   "\ud83d\ude00"   ─►  F0 9F 98 80          both halves: one character
 *
 * A string is decoded whole, while it is compared, or in pieces. A piece may end within an
 * escape, or between two halves. */
#include "base/json/scan_text.h"

#include "base/eight.h"
#include "base/json/scan.h"
#include "base/utf8.h"

static uint32_t take_hex(struct slice *raw)
{
    uint32_t unit = 0;
    size_t len = raw->len < 4 ? raw->len : 4;
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)raw->ptr[i];
        unit = unit << 4 | (c <= '9' ? c - 0x30u : (c | 0x20u) - 0x61u + 10);
    }
    *raw = slice_from(*raw, len);
    return unit & 0xFFFF;
}

/* Returns true if the text begins with the escape of a second half of a surrogate pair. */
static bool is_low_escape(struct slice text)
{
    return text.len >= 6 && text.ptr[0] == '\\' && text.ptr[1] == 'u' &&
           (text.ptr[2] | 0x20) == 'd' && memchr("cdefCDEF", text.ptr[3], 8);
}

/* Takes what follows a backslash and returns the character. Half of a pair without the
 * other half counts as a character. */
static uint32_t take_escape(struct slice *raw)
{
    static const char meanings[256] = {
        ['b'] = '\b', ['f'] = '\f', ['n'] = '\n', ['r'] = '\r', ['t'] = '\t'
    };
    if (!raw->len)
        return '\\';
    char c = raw->ptr[0];
    *raw = slice_from(*raw, 1);
    if (c != 'u') {
        char meaning = meanings[(unsigned char)c];
        return (unsigned char)(meaning ? meaning : c);
    }
    uint32_t unit = take_hex(raw);
    if (unit < 0xD800 || unit > 0xDBFF || !is_low_escape(*raw))
        return unit;
    *raw = slice_from(*raw, 2);
    return 0x10000 + ((unit - 0xD800) << 10) + (take_hex(raw) - 0xDC00);
}

/* Yields the decoded string byte by byte: raw bytes unchanged. left holds the remaining
 * bytes of the character that an escape stood for. */
struct decoder {
    struct slice raw;
    char left[4];
    uint8_t at, count;
};

static int next_byte(struct decoder *decoder)
{
    if (decoder->at < decoder->count)
        return (unsigned char)decoder->left[decoder->at++];
    if (!decoder->raw.len)
        return -1;
    unsigned char c = (unsigned char)decoder->raw.ptr[0];
    decoder->raw = slice_from(decoder->raw, 1);
    if (c != '\\')
        return c;
    decoder->count = (uint8_t)utf8_put(take_escape(&decoder->raw), decoder->left);
    decoder->at = 1;
    return (unsigned char)decoder->left[0];
}

bool scan_text_has_escape(struct slice raw)
{
    return raw.len && memchr(raw.ptr, '\\', raw.len);
}

int scan_text_compare(struct slice a, struct slice b)
{
    if (!scan_text_has_escape(a) && !scan_text_has_escape(b)) {
        size_t len = a.len < b.len ? a.len : b.len;
        int order = len ? memcmp(a.ptr, b.ptr, len) : 0;
        return order ? order : (a.len > b.len) - (a.len < b.len);
    }
    struct decoder left = { .raw = a }, right = { .raw = b };
    for (;;) {
        int x = next_byte(&left), y = next_byte(&right);
        if (x != y || x < 0)
            return x - y;
    }
}

bool scan_key_is(struct slice raw_key, struct slice name)
{
    if (!scan_text_has_escape(raw_key))
        return slice_equal(raw_key, name);
    struct decoder decoder = { .raw = raw_key };
    for (size_t i = 0; i < name.len; i++)
        if (next_byte(&decoder) != (unsigned char)name.ptr[i])
            return false;
    return next_byte(&decoder) < 0;
}

/* Decodes until at most left bytes of raw remain, and returns the end of the output. The
 * decoded text is never longer than the raw one. */
static char *put_decoded(char *out, struct slice *raw, size_t left)
{
    struct slice rest = *raw;
    while (rest.len > left) {
        if (rest.len >= 8 && !eight_have(eight_bytes(rest.ptr), '\\')) {
            memcpy(out, rest.ptr, 8);
            out += 8;
            rest = slice_from(rest, 8);
            continue;
        }
        for (int i = 0; i < 8 && rest.len > left; i++) {
            char c = rest.ptr[0];
            rest = slice_from(rest, 1);
            if (c != '\\')
                *out++ = c;
            else
                out += utf8_put(take_escape(&rest), out);
        }
    }
    *raw = rest;
    return out;
}

/* The same into a buffer. */
static void add_decoded(struct buf *out, struct slice *raw, size_t left)
{
    char *place = buf_reserve(out, raw->len);
    out->len += (size_t)(put_decoded(place, raw, left) - place);
}

void scan_unescape(struct slice raw, struct buf *out)
{
    add_decoded(out, &raw, 0);
}

/* ---- strings in pieces ---- */

enum { UNIT_ESCAPE = 6 }; /* bytes of \uXXXX */

/* Decodes the first escape that is held, or the pair, and keeps the rest. */
static void decode_held(struct scan_text *text, struct buf *out)
{
    struct slice escape = { text->escape + 1, text->len - 1u };
    char decoded[4];
    buf_add(out, (struct slice){ decoded, utf8_put(take_escape(&escape), decoded) });
    memmove(text->escape, escape.ptr, escape.len);
    text->len = (uint8_t)escape.len;
}

/* Returns true if an escape is held complete and may be the first half of a pair. */
static bool may_be_half(const struct scan_text *text)
{
    return (text->escape[2] | 0x20) == 'd' && memchr("89abAB", text->escape[3], 6);
}

/* Returns true if c cannot belong to the escape of a second half; the first is held. */
static bool ends_half(const struct scan_text *text, char c)
{
    return (text->len == UNIT_ESCAPE && c != '\\') ||
           (text->len == UNIT_ESCAPE + 1 && c != 'u');
}

static void decode_whole(struct scan_text *text, struct buf *out)
{
    bool is_short = text->len == 2 && text->escape[1] != 'u';
    if (is_short || text->len == SCAN_ESCAPE_MAX)
        decode_held(text, out);
    if (text->len == UNIT_ESCAPE && !may_be_half(text))
        decode_held(text, out);
}

static void feed_character(struct scan_text *text, char c, struct buf *out)
{
    if (ends_half(text, c))
        decode_held(text, out);
    if (!text->len && c != '\\') {
        buf_add_char(out, c);
        return;
    }
    text->escape[text->len++] = c;
    decode_whole(text, out);
}

/* Feeds a piece. Its last bytes are held back, because they may be part of an escape or a
 * pair. An escape that begins before them is complete, and so is the one that may be its
 * other half. */
void scan_text_feed(struct scan_text *text, struct slice raw, struct buf *out)
{
    while (raw.len) {
        if (!text->len && raw.len >= SCAN_ESCAPE_MAX) {
            add_decoded(out, &raw, SCAN_ESCAPE_MAX - 1);
            continue;
        }
        feed_character(text, raw.ptr[0], out);
        raw = slice_from(raw, 1);
    }
}

void scan_text_end(struct scan_text *text, struct buf *out)
{
    while (text->len)
        decode_held(text, out);
}

/* ---- halves ---- */

/* Spelling that many halves and validating that many bytes takes a few milliseconds. */
enum { SPELLED_HALVES_MAX = 50000, SPELLED_BYTES_MAX = 4 * 1024 * 1024 };

/* Returns the place of the first half that stands as its three bytes; the length: none. */
static size_t find_half(struct slice text)
{
    size_t at = 0;
    while (at < text.len) {
        const char *lead = memchr(text.ptr + at, 0xED, text.len - at);
        if (!lead)
            break;
        at = (size_t)(lead - text.ptr);
        if (utf8_is_half(lead, text.len - at))
            return at;
        at++;
    }
    return text.len;
}

/* Returns true if the text ends within an escape, whose meaning a half would change. */
static bool ends_in_escape(struct slice text)
{
    size_t backslashes = 0;
    while (backslashes < text.len && text.ptr[text.len - 1 - backslashes] == '\\')
        backslashes++;
    return backslashes % 2;
}

/* Appends the text with its halves as escapes. Returns false if there are too many, or one
 * within an escape. */
static bool add_spelled(struct slice text, struct buf *out)
{
    unsigned count = 0;
    for (size_t at; (at = find_half(text)) < text.len; text = slice_from(text, at + 3)) {
        struct slice before = { text.ptr, at };
        if (++count > SPELLED_HALVES_MAX || ends_in_escape(before))
            return false;
        buf_add(out, before);
        buf_add_escaped(out, (struct slice){ text.ptr + at, 3 });
    }
    buf_add(out, text);
    return true;
}

bool scan_spell_halves(struct slice text, struct buf *out)
{
    size_t start = out->len;
    if (text.len > SPELLED_BYTES_MAX || find_half(text) == text.len)
        return false;
    if (add_spelled(text, out) && scan_is_json(slice_from(buf_slice(out), start)))
        return true;
    out->len = start;
    return false;
}
