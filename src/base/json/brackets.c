/* brackets.c - finds brackets outside of strings, as bit masks of sixty-four bytes.
 *
 *   text     { " a [ " : [ 1 ]
 *   quotes   0 1 0 0 1 0 0 0 0     without escaped ones
 *   inside   0 1 1 1 0 0 0 0 0     each bit is the xor of the quotes up to it
 *   opening  1 0 0 0 0 0 1 0 0     brackets that are not inside
 *   closing  0 0 0 0 0 0 0 0 1 */
#include "base/json/brackets.h"

#include "base/eight.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum { BLOCK = 64 };

struct string_state {
    bool in_string, escaped; /* at the first byte of the next block */
};

struct masks {
    uint64_t quotes, backslashes, opening, closing;
};

#ifdef __SSE2__

static uint64_t found(__m128i bytes, char c)
{
    return (uint64_t)_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(c)));
}

static struct masks masks_of(const char *block)
{
    struct masks masks = { 0 };
    for (unsigned i = 0; i < BLOCK; i += 16) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)(block + i));
        __m128i lower = _mm_or_si128(bytes, _mm_set1_epi8(0x20)); /* [ is { then, ] is } */
        masks.quotes |= found(bytes, '"') << i;
        masks.backslashes |= found(bytes, '\\') << i;
        masks.opening |= found(lower, '{') << i;
        masks.closing |= found(lower, '}') << i;
    }
    return masks;
}

#else

/* Returns a bit for each zero byte of the eight; the first byte has the lowest bit. */
static uint64_t zeros(uint64_t bytes)
{
    uint64_t sevens = ~eight_tops;
    uint64_t tops = ~(((bytes & sevens) + sevens) | bytes | sevens); /* 0x80 for zero */
    return (tops >> 7) * UINT64_C(0x0102040810204080) >> 56;
}

static uint64_t found(uint64_t bytes, char c)
{
    return zeros(bytes ^ eight_ones * (unsigned char)c);
}

static struct masks masks_of(const char *block)
{
    struct masks masks = { 0 };
    for (unsigned i = 0; i < BLOCK; i += 8) {
        uint64_t bytes = eight_in_order(block + i);
        uint64_t lower = bytes | eight_ones * 0x20; /* [ is { then, and ] is } */
        masks.quotes |= found(bytes, '"') << i;
        masks.backslashes |= found(bytes, '\\') << i;
        masks.opening |= found(lower, '{') << i;
        masks.closing |= found(lower, '}') << i;
    }
    return masks;
}

#endif

/* Returns a bit for every escaped byte. */
static uint64_t take_escapes(struct string_state *reading, uint64_t backslashes)
{
    uint64_t escaped = reading->escaped;
    reading->escaped = false;
    backslashes &= ~escaped;
    while (backslashes) {
        unsigned at = (unsigned)__builtin_ctzll(backslashes);
        reading->escaped = at == BLOCK - 1;
        if (at < BLOCK - 1)
            escaped |= UINT64_C(2) << at;
        backslashes &= backslashes - 1;
        backslashes &= ~escaped;
    }
    return escaped;
}

/* Returns a bit for every byte up to which the number of quotes is odd. */
static uint64_t inside_of(struct string_state *reading, uint64_t quotes)
{
    for (unsigned by = 1; by < BLOCK; by *= 2)
        quotes ^= quotes << by;
    if (reading->in_string)
        quotes = ~quotes;
    reading->in_string = quotes >> (BLOCK - 1);
    return quotes;
}

/* Finds the brackets of the next block. The text may be shorter than a block. */
static struct masks next_block(struct string_state *reading, struct slice text)
{
    char part[BLOCK] = { 0 };
    const char *block = text.ptr;
    if (text.len < BLOCK) {
        memcpy(part, text.ptr, text.len);
        block = part;
    }
    struct masks masks = masks_of(block);
    if (masks.backslashes || reading->escaped)
        masks.quotes &= ~take_escapes(reading, masks.backslashes);
    uint64_t inside = inside_of(reading, masks.quotes);
    masks.opening &= ~inside;
    masks.closing &= ~inside;
    return masks;
}

/* Counts the set bits of each group of eight. Each count is a byte of the result; pairs,
 * then fours are added up. */
static uint64_t counts_of(uint64_t mask)
{
    mask -= mask >> 1 & UINT64_C(0x5555555555555555);
    mask =
        (mask & UINT64_C(0x3333333333333333)) + (mask >> 2 & UINT64_C(0x3333333333333333));
    return (mask + (mask >> 4)) & UINT64_C(0x0F0F0F0F0F0F0F0F);
}

/* The compiler's own popcount would be a call on processors that lack the instruction. */
static unsigned count(uint64_t mask)
{
    return (unsigned)(counts_of(mask) * eight_ones >> 56);
}

/* Returns where the depth falls to zero within eight bits from the first one on. BLOCK: it
 * does not. */
static unsigned find_end_in(struct masks masks, unsigned first, size_t depth)
{
    for (unsigned at = first; at < first + 8; at++) {
        depth += masks.opening >> at & 1;
        depth -= masks.closing >> at & 1;
        if (!depth)
            return at;
    }
    return BLOCK;
}

/* The same for a whole block. Most groups have fewer closing brackets than are open. */
static unsigned find_end(struct masks masks, size_t depth)
{
    uint64_t opening = counts_of(masks.opening), closing = counts_of(masks.closing);
    for (unsigned first = 0; first < BLOCK; first += 8) {
        size_t closed = closing >> first & 0xFF;
        unsigned end = closed < depth ? BLOCK : find_end_in(masks, first, depth);
        if (end < BLOCK)
            return end;
        depth += opening >> first & 0xFF;
        depth -= closed;
    }
    return BLOCK;
}

size_t brackets_until_closed(struct slice text, size_t depth)
{
    struct string_state reading = { 0 };
    for (size_t at = 0; at < text.len; at += BLOCK) {
        struct masks masks = next_block(&reading, slice_from(text, at));
        if (count(masks.closing) >= depth) {
            unsigned end = find_end(masks, depth);
            if (end < BLOCK)
                return at + end + 1;
        }
        depth += count(masks.opening);
        depth -= count(masks.closing);
    }
    return text.len;
}

static bool rises_above(struct masks masks, size_t depth, size_t most)
{
    for (uint64_t left = masks.opening | masks.closing; left; left &= left - 1) {
        depth += masks.opening & left & -left ? 1 : (size_t)-1;
        if (depth > most && masks.opening & left & -left)
            return true;
    }
    return false;
}

bool brackets_deeper_than(struct slice text, size_t most)
{
    struct string_state reading = { 0 };
    size_t depth = 0;
    for (size_t at = 0; at < text.len; at += BLOCK) {
        struct masks masks = next_block(&reading, slice_from(text, at));
        if (depth + count(masks.opening) > most && rises_above(masks, depth, most))
            return true;
        depth += count(masks.opening);
        depth -= count(masks.closing);
    }
    return false;
}
