/* text.c - numbers, ids, base64url, hex, UTF-8 and percent-encoding. Times: text_time.c. */
#include "base/text.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

#include "base/eight.h"
#include "base/utf8.h"

enum { ID_TIME_LEN = 9, ID_COUNTED_LEN = 4 };

static const char id_alphabet[] = "123456789abcdefghijkmnopqrstuvwxyz";

enum err text_to_u64(struct slice text, uint64_t *number)
{
    uint64_t value = 0;
    if (!text.len)
        return ERR_INVALID;
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9')
            return ERR_INVALID;
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(text.ptr[i] - '0'), &value))
            return ERR_INVALID;
    }
    *number = value;
    return OK;
}

enum err text_to_i64(struct slice text, int64_t *number)
{
    bool negative = text.len && text.ptr[0] == '-';
    uint64_t value;
    if (text_to_u64(negative ? slice_from(text, 1) : text, &value))
        return ERR_INVALID;
    if (value > (uint64_t)INT64_MAX + negative)
        return ERR_INVALID;
    *number = (int64_t)(negative ? 0 - value : value);
    return OK;
}

/* Draws bytes for many characters in one system call. Bytes above the last whole multiple
 * of the alphabet are dropped, so that all characters are equally likely. */
void text_random(char *out, size_t len, const char *alphabet)
{
    size_t count = strlen(alphabet);
    assert(count > 1 && count <= 256);
    size_t usable = 256 - 256 % count;
    size_t made = 0;
    while (made < len) {
        unsigned char drawn[64];
        ssize_t got = getrandom(drawn, sizeof(drawn), 0);
        if (got < 0 && errno != EINTR)
            abort();
        for (ssize_t i = 0; i < got && made < len; i++)
            if (drawn[i] < usable)
                out[made++] = alphabet[drawn[i] % count];
    }
}

void text_make_id(const char *prefix, int64_t unix_ms, char out[ID_MAX])
{
    size_t len = strlen(prefix);
    assert(unix_ms >= 0 && len + 1 + ID_RANDOM_LEN < ID_MAX);
    memcpy(out, prefix, len);
    out[len++] = '_';
    uint64_t rest = (uint64_t)unix_ms;
    for (size_t i = ID_TIME_LEN; i-- > 0; rest /= sizeof(id_alphabet) - 1)
        out[len + i] = id_alphabet[rest % (sizeof(id_alphabet) - 1)];
    text_random(out + len + ID_TIME_LEN, ID_RANDOM_LEN - ID_TIME_LEN, id_alphabet);
    out[len + ID_RANDOM_LEN] = '\0';
}

static void count_up(char *digits, size_t len)
{
    for (size_t i = len; i-- > 0;) {
        const char *next = strchr(id_alphabet, digits[i]) + 1;
        digits[i] = *next ? *next : id_alphabet[0];
        if (*next)
            return;
    }
}

/* Each millisecond's counter starts in the lowest part of its range. More than a million
 * ids follow before it overflows into the next millisecond. */
void text_make_next_id(const char *prefix, int64_t unix_ms, char last[ID_MAX])
{
    char id[ID_MAX];
    text_make_id(prefix, unix_ms, id);
    char *time = id + strlen(prefix) + 1, *counted = time + ID_TIME_LEN;
    const char *before = last + strcspn(last, "_");
    if (*before && strncmp(before + 1, time, ID_TIME_LEN) >= 0) {
        memcpy(time, before + 1, ID_TIME_LEN + ID_COUNTED_LEN);
        count_up(time, ID_TIME_LEN + ID_COUNTED_LEN);
    } else {
        *counted = id_alphabet[0];
    }
    memcpy(last, id, sizeof(id));
}

void text_note_id(const char *id, char last[ID_MAX])
{
    const char *drawn = strchr(id, '_'), *before = strchr(last, '_');
    if (!drawn || strlen(drawn) != 1 + ID_RANDOM_LEN ||
        (before && strcmp(drawn, before) <= 0))
        return;
    snprintf(last, ID_MAX, "%s", id);
}

bool text_is_id(struct slice text, const char *prefix)
{
    size_t len = strlen(prefix);
    if (!slice_starts(text, prefix) || text.len < len + 1 || text.ptr[len] != '_')
        return false;
    text = slice_from(text, len + 1);
    for (size_t i = 0; i < text.len; i++)
        if ((text.ptr[i] < 'a' || text.ptr[i] > 'z') &&
            (text.ptr[i] < '0' || text.ptr[i] > '9'))
            return false;
    return text.len >= 21 && text.len <= 26;
}

size_t text_to_base64url(struct slice bytes, char *out)
{
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    uint32_t bits = 0;
    unsigned have = 0;
    size_t len = 0;
    for (size_t i = 0; i < bytes.len; i++) {
        bits = bits << 8 | (unsigned char)bytes.ptr[i];
        for (have += 8; have >= 6; have -= 6)
            out[len++] = alphabet[bits >> (have - 6) & 63];
    }
    if (have)
        out[len++] = alphabet[bits << (6 - have) & 63];
    return len;
}

static int base64url_value(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '-' ? 62 : c == '_' ? 63 : -1;
}

enum err text_from_base64url(struct slice text, unsigned char *out, size_t *len)
{
    uint32_t bits = 0;
    unsigned have = 0;
    size_t made = 0;
    for (size_t i = 0; i < text.len; i++) {
        int value = base64url_value(text.ptr[i]);
        if (value < 0)
            return ERR_INVALID;
        bits = bits << 6 | (uint32_t)value;
        have += 6;
        if (have >= 8) {
            have -= 8;
            out[made++] = (unsigned char)(bits >> have);
        }
    }
    if (have == 6 || (bits & ((1u << have) - 1)))
        return ERR_INVALID;
    *len = made;
    return OK;
}

void text_to_hex(const unsigned char *bytes, size_t len, char *out)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < len; i++) {
        out[2 * i] = digits[bytes[i] >> 4];
        out[2 * i + 1] = digits[bytes[i] & 15];
    }
    out[2 * len] = '\0';
}

bool text_is_utf8(struct slice text)
{
    const unsigned char *at = (const unsigned char *)text.ptr;
    const unsigned char *end = text.len ? at + text.len : at;
    while (at < end) {
        while (end - at >= 8 && !eight_have_wide(eight_bytes(at)))
            at += 8;
        if (at == end || *at < 0x80) {
            at += at < end;
            continue;
        }
        uint8_t low, high;
        uint8_t pending = utf8_lead(*at++, &low, &high);
        if (!pending || end - at < pending)
            return false;
        for (; pending; pending--, at++, low = 0x80, high = 0xBF)
            if (*at < low || *at > high)
                return false;
    }
    return true;
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

enum err text_percent_decode(struct slice text, bool plus_is_space, char *out, size_t *len)
{
    size_t made = 0;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (c == '%') {
            if (text.len - i < 3)
                return ERR_INVALID;
            int high = hex_value(text.ptr[i + 1]);
            int low = hex_value(text.ptr[i + 2]);
            if (high < 0 || low < 0)
                return ERR_INVALID;
            c = (char)(high << 4 | low);
            i += 2;
        } else if (c == '+' && plus_is_space) {
            c = ' ';
        }
        if (!c)
            return ERR_INVALID;
        out[made++] = c;
    }
    if (!text_is_utf8((struct slice){ out, made }))
        return ERR_INVALID;
    *len = made;
    return OK;
}

size_t text_utf16_length(struct slice text)
{
    size_t count = 0;
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        count += (c & 0xC0) != 0x80;
        count += c >= 0xF0;
    }
    return count;
}

struct slice text_clip(struct slice text)
{
    size_t len = text.len < 100 ? text.len : 100;
    while (len < text.len && len && ((unsigned char)text.ptr[len] & 0xC0) == 0x80)
        len--;
    return (struct slice){ text.ptr, len };
}
