/* utf8.h - UTF-8, one character at a time (RFC 3629). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns how many bytes follow this first byte, 1 to 3, and the bounds of the next one.
 * Returns 0 if no multi-byte character begins with it. The bytes after the next one are
 * 0x80 to 0xBF. */
static inline uint8_t utf8_lead(unsigned char first, uint8_t *low, uint8_t *high)
{
    *low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
    *high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
    if (first < 0xC2 || first > 0xF4)
        return 0;
    return first < 0xE0 ? 1 : first < 0xF0 ? 2 : 3;
}

/* Writes the character, up to four bytes, and returns their number. */
static inline size_t utf8_put(uint32_t character, char out[4])
{
    if (character < 0x80) {
        out[0] = (char)character;
        return 1;
    }
    size_t len = character < 0x800 ? 2 : character < 0x10000 ? 3 : 4;
    for (size_t i = len - 1; i > 0; i--) {
        out[i] = (char)(0x80 | (character & 0x3F));
        character >>= 6;
    }
    out[0] = (char)(0xF00u >> len | character);
    return len;
}

/* Returns true if the text begins with half of a surrogate pair as its three bytes, which
 * WTF-8 allows and UTF-8 does not. utf8_half returns the character, 0xD800 to 0xDFFF. */
static inline bool utf8_is_half(const char *text, size_t len)
{
    return len >= 3 && (unsigned char)text[0] == 0xED && (unsigned char)text[1] >= 0xA0 &&
           ((unsigned char)text[1] & 0xC0) == 0x80 &&
           ((unsigned char)text[2] & 0xC0) == 0x80;
}

static inline uint32_t utf8_half(const char *text)
{
    return 0xD000 | ((unsigned char)text[1] & 0x3Fu) << 6 |
           ((unsigned char)text[2] & 0x3Fu);
}
