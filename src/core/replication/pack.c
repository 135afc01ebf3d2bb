/* pack.c - writes and reads msgpack (github.com/msgpack/msgpack/blob/master/spec.md). */
#include "core/replication/pack.h"

#include <math.h>

/* First bytes. Those of the fixed forms hold a small number in their low bits. */
enum {
    FIX_MAP = 0x80,
    FIX_ARRAY = 0x90,
    FIX_STR = 0xa0,
    NIL = 0xc0,
    FALSE = 0xc2,
    TRUE = 0xc3,
    BIN_8 = 0xc4,
    BIN_32 = 0xc6,
    EXT_8 = 0xc7,
    EXT_32 = 0xc9,
    FLOAT_32 = 0xca,
    FLOAT_64 = 0xcb,
    UINT_8 = 0xcc,
    UINT_64 = 0xcf,
    INT_8 = 0xd0,
    INT_64 = 0xd3,
    FIX_EXT_1 = 0xd4,
    FIX_EXT_16 = 0xd8,
    STR_8 = 0xd9,
    STR_32 = 0xdb,
    ARRAY_16 = 0xdc,
    ARRAY_32 = 0xdd,
    MAP_16 = 0xde,
    MAP_32 = 0xdf,
    FIX_NEGATIVE = 0xe0,
};

/* ---- writing ---- */

static int append(void *out, const char *bytes, size_t len)
{
    buf_add(out, (struct slice){ bytes, len });
    return 0;
}

msgpack_packer pack_to(struct buf *out)
{
    msgpack_packer packer;
    msgpack_packer_init(&packer, out, append);
    return packer;
}

void pack_bytes(msgpack_packer *packer, struct slice bytes)
{
    if (bytes.ptr)
        msgpack_pack_bin_with_body(packer, bytes.ptr, bytes.len);
    else
        msgpack_pack_nil(packer);
}

enum { MAP_HEAD = 3 };

size_t pack_map_begin(msgpack_packer *packer)
{
    struct buf *out = packer->data;
    size_t place = out->len;
    buf_reserve(out, MAP_HEAD);
    out->len += MAP_HEAD;
    return place;
}

void pack_map_end(msgpack_packer *packer, size_t place, size_t pairs)
{
    struct buf *out = packer->data;
    assert(pairs <= UINT16_MAX);
    out->ptr[place] = (char)MAP_16;
    out->ptr[place + 1] = (char)(pairs >> 8);
    out->ptr[place + 2] = (char)pairs;
}

/* ---- reading ---- */

static unsigned take_type(struct cursor *in)
{
    return (unsigned)cursor_number(in, 1);
}

static bool is_within(unsigned type, unsigned first, unsigned last)
{
    return type >= first && type <= last;
}

static uint64_t failed(struct cursor *in)
{
    in->failed = true;
    return 0;
}

/* Takes the number after the head of a value whose forms have 1, 2, 4, … bytes. */
static uint64_t take_sized(struct cursor *in, unsigned type, unsigned first)
{
    return cursor_number(in, (size_t)1 << (type - first));
}

uint64_t take_number(struct cursor *in, uint64_t most)
{
    unsigned type = take_type(in);
    uint64_t number = type < FIX_MAP                     ? type
                      : is_within(type, UINT_8, UINT_64) ? take_sized(in, type, UINT_8)
                                                         : failed(in);
    return number <= most ? number : failed(in);
}

/* Extends the sign of a number of that many bytes. */
static int64_t extended(uint64_t number, size_t width)
{
    unsigned spare = (unsigned)(8 * (sizeof(number) - width));
    return (int64_t)(number << spare) >> spare;
}

static int64_t take_negative(struct cursor *in, unsigned type)
{
    if (type >= FIX_NEGATIVE)
        return (int8_t)type;
    if (!is_within(type, INT_8, INT_64))
        return (int64_t)failed(in);
    return extended(take_sized(in, type, INT_8), (size_t)1 << (type - INT_8));
}

int64_t take_signed(struct cursor *in, int64_t least, int64_t most)
{
    if (!cursor_left(in))
        return (int64_t)failed(in);
    bool is_unsigned = *in->at < FIX_MAP || is_within(*in->at, UINT_8, UINT_64);
    int64_t number = is_unsigned ? (int64_t)take_number(in, INT64_MAX)
                                 : take_negative(in, take_type(in));
    return number >= least && number <= most ? number : (int64_t)failed(in);
}

double take_real(struct cursor *in)
{
    uint64_t bits = take_type(in) == FLOAT_64 ? cursor_number(in, 8) : failed(in);
    double real;
    memcpy(&real, &bits, sizeof(real));
    return isfinite(real) ? real : (double)failed(in);
}

static bool is_text(unsigned type)
{
    return is_within(type, FIX_STR, NIL - 1) || is_within(type, BIN_8, BIN_32) ||
           is_within(type, STR_8, STR_32);
}

static uint64_t take_text_len(struct cursor *in, unsigned type)
{
    if (is_within(type, BIN_8, BIN_32))
        return take_sized(in, type, BIN_8);
    return type >= STR_8 ? take_sized(in, type, STR_8) : type - FIX_STR;
}

struct slice take_bytes(struct cursor *in, size_t most)
{
    unsigned type = take_type(in);
    if (type == NIL)
        return (struct slice){ 0 };
    uint64_t len = is_text(type) ? take_text_len(in, type) : failed(in);
    return cursor_bytes(in, len <= most ? (size_t)len : (size_t)failed(in));
}

struct bytes *take_copy(struct cursor *in)
{
    struct slice bytes = take_bytes(in, UINT32_MAX);
    return in->failed ? NULL : bytes_create(bytes);
}

static uint64_t take_array_len(struct cursor *in, unsigned type)
{
    return type >= ARRAY_16 ? cursor_number(in, type == ARRAY_16 ? 2 : 4)
                            : type - FIX_ARRAY;
}

static bool is_array(unsigned type)
{
    return is_within(type, FIX_ARRAY, FIX_STR - 1) || is_within(type, ARRAY_16, ARRAY_32);
}

static uint64_t take_map_len(struct cursor *in, unsigned type)
{
    return type >= MAP_16 ? cursor_number(in, type == MAP_16 ? 2 : 4) : type - FIX_MAP;
}

static bool is_map(unsigned type)
{
    return is_within(type, FIX_MAP, FIX_ARRAY - 1) || is_within(type, MAP_16, MAP_32);
}

/* Each value takes a byte at least. */
static size_t limited(struct cursor *in, uint64_t count, size_t values, size_t most)
{
    bool fits = count <= most && count * values <= cursor_left(in);
    return fits && !in->failed ? (size_t)count : (size_t)failed(in);
}

size_t take_array(struct cursor *in, size_t most)
{
    unsigned type = take_type(in);
    uint64_t count = is_array(type) ? take_array_len(in, type) : failed(in);
    return limited(in, count, 1, most);
}

size_t take_map(struct cursor *in, size_t most)
{
    unsigned type = take_type(in);
    uint64_t count = is_map(type) ? take_map_len(in, type) : failed(in);
    return limited(in, count, 2, most);
}

bool take_true(struct cursor *in)
{
    bool is_there = cursor_left(in) && *in->at == TRUE;
    if (is_there)
        in->at++;
    return is_there;
}

/* ---- skipping ---- */

/* Returns the bytes after the head of a value that is neither a text nor has values. */
static uint64_t plain_len(struct cursor *in, unsigned type)
{
    if (is_within(type, EXT_8, EXT_32))
        return 1 + take_sized(in, type, EXT_8);
    if (is_within(type, FIX_EXT_1, FIX_EXT_16))
        return 1 + ((uint64_t)1 << (type - FIX_EXT_1));
    if (is_within(type, UINT_8, UINT_64))
        return (uint64_t)1 << (type - UINT_8);
    if (is_within(type, INT_8, INT_64))
        return (uint64_t)1 << (type - INT_8);
    if (is_within(type, FLOAT_32, FLOAT_64))
        return type == FLOAT_32 ? 4 : 8;
    return type == NIL + 1 ? failed(in) : 0; /* 0xc1 is never used */
}

void take_any(struct cursor *in)
{
    for (uint64_t values = 1; values && !in->failed; values--) {
        unsigned type = take_type(in);
        if (is_array(type))
            values += limited(in, take_array_len(in, type), 1, SIZE_MAX);
        else if (is_map(type))
            values += 2 * limited(in, take_map_len(in, type), 2, SIZE_MAX);
        else
            cursor_bytes(in, (size_t)(is_text(type) ? take_text_len(in, type)
                                                    : plain_len(in, type)));
    }
}
