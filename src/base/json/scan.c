/* scan.c - validates JSON piece by piece.
 *
 *   value ─► after value ─► comma ─► value | key ─► colon ─► value …
 *
 * The state between two pieces is in struct scan. Strings are skipped eight bytes at a
 * time; nothing else is worth it. */
#include "base/json/scan.h"

#include "base/eight.h"
#include "base/mem.h"
#include "base/utf8.h"

enum { LEVELS_A_WORD = 64 };

enum scan_state {
    AT_VALUE,
    AT_FIRST_ELEMENT, /* a value or ] */
    AT_FIRST_KEY,     /* a key or } */
    AT_KEY,
    AT_COLON,
    AFTER_VALUE,
    IN_STRING,
    IN_UTF8,
    AFTER_BACKSLASH,
    IN_HEX,
    IN_WORD,
    AFTER_MINUS,
    AFTER_ZERO,
    IN_INTEGER,
    AFTER_POINT,
    IN_FRACTION,
    AFTER_E,
    AFTER_SIGN,
    IN_EXPONENT,
    REFUSED,
};

/* Characters that may follow a backslash, except the u. */
static const bool is_escape[256] = {
    ['"'] = true, ['\\'] = true, ['/'] = true, ['b'] = true,
    ['f'] = true, ['n'] = true,  ['r'] = true, ['t'] = true
};

static const unsigned char *scan_refuse(struct scan *scan, const unsigned char *at)
{
    scan->state = REFUSED;
    return at;
}

static bool is_digit(unsigned char c)
{
    return c >= '0' && c <= '9';
}

static bool is_space(unsigned char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

/* ---- strings ---- */

static bool are_ordinary(const unsigned char *eight)
{
    uint64_t bytes = eight_bytes(eight);
    return !(eight_have_control(bytes) | eight_have(bytes, '"') | eight_have(bytes, '\\') |
             eight_have_wide(bytes));
}

static bool is_ordinary(unsigned char c)
{
    return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
}

static const unsigned char *skip_ordinary(const unsigned char *at, const unsigned char *end)
{
    while (end - at >= 8 && are_ordinary(at))
        at += 8;
    while (at < end && is_ordinary(*at))
        at++;
    return at;
}

static bool is_continuation(unsigned char c)
{
    return (c & 0xC0) == 0x80;
}

/* Skips multi-byte characters that are complete in this piece; stops at any other. */
static const unsigned char *skip_wide(const unsigned char *at, const unsigned char *end)
{
    while (end - at >= 4 && *at >= 0x80) {
        uint8_t low, high, more = utf8_lead(*at, &low, &high);
        if (!more || at[1] < low || at[1] > high || (more > 1 && !is_continuation(at[2])) ||
            (more > 2 && !is_continuation(at[3])))
            break;
        at += 1 + more;
    }
    return at;
}

static int hex_value(unsigned char c)
{
    if (is_digit(c))
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Returns true if the last four of the six bytes \uXXXX are hexadecimal digits. */
static bool is_unit(const unsigned char *six)
{
    int unit = 0;
    for (int i = 2; i < 6; i++)
        unit |= hex_value(six[i]);
    return unit >= 0;
}

/* Skips escapes that are complete in this piece; stops at anything else. */
static const unsigned char *skip_escapes(const unsigned char *at, const unsigned char *end)
{
    while (end - at >= 6 && at[0] == '\\') {
        if (is_escape[at[1]])
            at += 2;
        else if (at[1] == 'u' && is_unit(at))
            at += 6;
        else
            break;
    }
    return at;
}

static const unsigned char *step_utf8(struct scan *scan, const unsigned char *at,
                                      const unsigned char *end)
{
    for (; scan->pending && at < end; at++, scan->pending--) {
        if (*at < scan->low || *at > scan->high)
            return scan_refuse(scan, at);
        scan->low = 0x80;
        scan->high = 0xBF;
    }
    scan->state = scan->pending ? IN_UTF8 : IN_STRING;
    return at;
}

static const unsigned char *step_string(struct scan *scan, const unsigned char *at,
                                        const unsigned char *end)
{
    while (scan->state == IN_STRING) {
        at = skip_wide(skip_escapes(skip_ordinary(at, end), end), end);
        if (at == end)
            break;
        if (is_ordinary(*at))
            continue;
        unsigned char c = *at;
        if (c == '"') {
            scan->state = scan->in_key ? AT_COLON : AFTER_VALUE;
            return at + 1;
        }
        if (c == '\\') {
            scan->state = AFTER_BACKSLASH;
            return at + 1;
        }
        scan->pending = utf8_lead(c, &scan->low, &scan->high);
        if (!scan->pending)
            return scan_refuse(scan, at);
        at = step_utf8(scan, at + 1, end);
    }
    return at;
}

static const unsigned char *step_hex(struct scan *scan, const unsigned char *at,
                                     const unsigned char *end)
{
    for (; scan->pending && at < end; at++, scan->pending--)
        if (hex_value(*at) < 0)
            return scan_refuse(scan, at);
    scan->state = scan->pending ? IN_HEX : IN_STRING;
    return at;
}

static const unsigned char *step_escape(struct scan *scan, const unsigned char *at)
{
    if (*at != 'u' && !is_escape[*at])
        return scan_refuse(scan, at);
    scan->pending = *at == 'u' ? 4 : 0;
    scan->state = *at == 'u' ? IN_HEX : IN_STRING;
    return at + 1;
}

/* ---- numbers and words ---- */

static const unsigned char *step_word(struct scan *scan, const unsigned char *at,
                                      const unsigned char *end)
{
    for (; *scan->word && at < end; at++, scan->word++)
        if (*at != (unsigned char)*scan->word)
            return scan_refuse(scan, at);
    if (!*scan->word)
        scan->state = AFTER_VALUE;
    return at;
}

static bool number_may_end(unsigned state)
{
    return state == AFTER_ZERO || state == IN_INTEGER || state == IN_FRACTION ||
           state == IN_EXPONENT;
}

/* Returns the state after this character of a number; REFUSED if it ends the number. */
static enum scan_state number_state(enum scan_state state, unsigned char c)
{
    bool digit = is_digit(c);
    bool e = c == 'e' || c == 'E';
    switch (state) {
    case AFTER_MINUS: return c == '0' ? AFTER_ZERO : digit ? IN_INTEGER : REFUSED;
    case AFTER_ZERO: return c == '.' ? AFTER_POINT : e ? AFTER_E : REFUSED;
    case IN_INTEGER: return c == '.' ? AFTER_POINT : e ? AFTER_E : digit ? state : REFUSED;
    case AFTER_POINT: return digit ? IN_FRACTION : REFUSED;
    case IN_FRACTION: return e ? AFTER_E : digit ? state : REFUSED;
    case AFTER_E:
        if (c == '+' || c == '-')
            return AFTER_SIGN;
        return digit ? IN_EXPONENT : REFUSED;
    default: return digit ? IN_EXPONENT : REFUSED;
    }
}

/* A number ends before the first character that does not belong to it. */
static const unsigned char *step_number(struct scan *scan, const unsigned char *at,
                                        const unsigned char *end)
{
    enum scan_state state = scan->state;
    for (; at < end; at++) {
        enum scan_state next = number_state(state, *at);
        if (next == REFUSED) {
            scan->state = number_may_end(state) ? AFTER_VALUE : REFUSED;
            return at;
        }
        state = next;
    }
    scan->state = (uint8_t)state;
    return at;
}

/* ---- structure ---- */

/* Returns the word with the bit of this level, which must exist. */
static uint64_t *word_of(struct scan *scan, size_t level)
{
    size_t word = level / LEVELS_A_WORD;
    return word < SCAN_NEAR_WORDS ? &scan->near[word] : &scan->far[word - SCAN_NEAR_WORDS];
}

static bool top_is_object(struct scan *scan)
{
    size_t level = scan->depth - 1;
    return *word_of(scan, level) >> (level % LEVELS_A_WORD) & 1;
}

/* Doubles the space for bits of levels if needed. Returns false above SCAN_FAR_MAX. */
static bool reserve_level(struct scan *scan)
{
    size_t word = scan->depth / LEVELS_A_WORD;
    if (word < SCAN_NEAR_WORDS + scan->far_words)
        return true;
    size_t words = scan->far_words ? scan->far_words * 2 : SCAN_NEAR_WORDS * 2;
    scan->too_deep = words * sizeof(*scan->far) > SCAN_FAR_MAX;
    if (scan->too_deep)
        return false;
    scan->far = mem_resize(scan->far, words * sizeof(*scan->far));
    scan->far_words = words;
    return true;
}

static bool open_level(struct scan *scan, bool object)
{
    if (!reserve_level(scan))
        return false;
    uint64_t *word = word_of(scan, scan->depth);
    uint64_t bit = UINT64_C(1) << (scan->depth % LEVELS_A_WORD);
    *word = object ? *word | bit : *word & ~bit;
    scan->depth++;
    scan->state = object ? AT_FIRST_KEY : AT_FIRST_ELEMENT;
    return true;
}

static bool begin_word(struct scan *scan, const char *rest)
{
    scan->word = rest;
    scan->state = IN_WORD;
    return true;
}

static bool begin_string(struct scan *scan, bool in_key)
{
    scan->in_key = in_key;
    scan->state = IN_STRING;
    return true;
}

static bool begin_value(struct scan *scan, unsigned char c)
{
    switch (c) {
    case '"': return begin_string(scan, false);
    case '{': return open_level(scan, true);
    case '[': return open_level(scan, false);
    case 't': return begin_word(scan, "rue");
    case 'f': return begin_word(scan, "alse");
    case 'n': return begin_word(scan, "ull");
    case '-': scan->state = AFTER_MINUS; return true;
    case '0': scan->state = AFTER_ZERO; return true;
    default: scan->state = IN_INTEGER; return is_digit(c);
    }
}

static bool close_level(struct scan *scan)
{
    scan->depth--;
    scan->state = AFTER_VALUE;
    return true;
}

static bool after_value(struct scan *scan, unsigned char c)
{
    if (scan->depth == 0)
        return false;
    bool object = top_is_object(scan);
    if (c == (object ? '}' : ']'))
        return close_level(scan);
    scan->state = object ? AT_KEY : AT_VALUE;
    return c == ',';
}

/* Takes one character between values that is not white space. */
static bool take_structure(struct scan *scan, unsigned char c)
{
    switch (scan->state) {
    case AT_FIRST_ELEMENT: return c == ']' ? close_level(scan) : begin_value(scan, c);
    case AT_FIRST_KEY:
        return c == '}' ? close_level(scan) : c == '"' && begin_string(scan, true);
    case AT_KEY: return c == '"' && begin_string(scan, true);
    case AT_COLON: scan->state = AT_VALUE; return c == ':';
    case AFTER_VALUE: return after_value(scan, c);
    default: return begin_value(scan, c);
    }
}

static const unsigned char *step_structure(struct scan *scan, const unsigned char *at,
                                           const unsigned char *end)
{
    for (; at < end && scan->state <= AFTER_VALUE; at++)
        if (!is_space(*at) && !take_structure(scan, *at))
            return scan_refuse(scan, at);
    return at;
}

static const unsigned char *step(struct scan *scan, const unsigned char *at,
                                 const unsigned char *end)
{
    switch (scan->state) {
    case IN_STRING: return step_string(scan, at, end);
    case IN_UTF8: return step_utf8(scan, at, end);
    case AFTER_BACKSLASH: return step_escape(scan, at);
    case IN_HEX: return step_hex(scan, at, end);
    case IN_WORD: return step_word(scan, at, end);
    default:
        if (scan->state <= AFTER_VALUE)
            return step_structure(scan, at, end);
        return step_number(scan, at, end);
    }
}

void scan_init(struct scan *scan)
{
    *scan = (struct scan){ .state = AT_VALUE };
}

enum err scan_explain(const struct scan *scan, struct failure *why)
{
    if (scan->too_deep)
        return explain(why, ERR_INVALID, "Invalid JSON at byte %zu: nested deeper than %d",
                       scan->offset, SCAN_DEPTH_MAX);
    return explain(why, ERR_INVALID, "Invalid JSON at byte %zu", scan->offset);
}

enum err scan_feed(struct scan *scan, struct slice piece)
{
    const unsigned char *start = (const unsigned char *)piece.ptr;
    const unsigned char *at = start;
    const unsigned char *end = piece.len ? start + piece.len : start;
    while (at < end && scan->state != REFUSED)
        at = step(scan, at, end);
    scan->offset += (size_t)(at - start);
    return scan->state == REFUSED ? ERR_INVALID : OK;
}

enum err scan_finish(struct scan *scan)
{
    bool is_complete =
        !scan->depth && (scan->state == AFTER_VALUE || number_may_end(scan->state));
    free(scan->far);
    scan->far = NULL;
    scan->far_words = 0;
    scan->state = is_complete ? AFTER_VALUE : REFUSED;
    return is_complete ? OK : ERR_INVALID;
}

bool scan_is_json(struct slice text)
{
    struct scan scan;
    scan_init(&scan);
    bool is_refused = scan_feed(&scan, text);
    return !scan_finish(&scan) && !is_refused;
}

bool scan_bytes_are_json(struct bytes *bytes)
{
    if (!bytes)
        return false;
    if (bytes->json == BYTES_UNKNOWN)
        bytes->json = scan_is_json(bytes_slice(bytes)) ? BYTES_JSON : BYTES_NO_JSON;
    return bytes->json == BYTES_JSON;
}
