/* eight.h - tests eight bytes of text at a time for certain values. */
#pragma once

#include <stdint.h>
#include <string.h>

static const uint64_t eight_ones = UINT64_C(0x0101010101010101);
static const uint64_t eight_tops = UINT64_C(0x8080808080808080);

static inline uint64_t eight_bytes(const void *at)
{
    uint64_t bytes;
    memcpy(&bytes, at, sizeof(bytes));
    return bytes;
}

/* The first byte is the lowest one, on every machine. */
static inline uint64_t eight_in_order(const void *at)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    return __builtin_bswap64(eight_bytes(at));
#else
    return eight_bytes(at);
#endif
}

/* Returns nonzero if one of the bytes is c. */
static inline uint64_t eight_have(uint64_t bytes, unsigned char c)
{
    uint64_t zero = bytes ^ eight_ones * c;
    return (zero - eight_ones) & ~zero & eight_tops;
}

/* Returns nonzero if one of the bytes is below 0x20. */
static inline uint64_t eight_have_control(uint64_t bytes)
{
    return (bytes - eight_ones * 0x20) & ~bytes & eight_tops;
}

/* Returns nonzero if one of the bytes is not ASCII. */
static inline uint64_t eight_have_wide(uint64_t bytes)
{
    return bytes & eight_tops;
}
