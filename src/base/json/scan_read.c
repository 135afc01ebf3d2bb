/* scan_read.c - yields spans of JSON text that the validator has accepted.
 *
 * Nothing is remembered between calls: looking up a member walks over the object again.
 * Invalid text yields wrong spans, but none outside the text. */
#include "base/json/scan.h"

#include <locale.h>

#include "base/eight.h"
#include "base/json/brackets.h"
#include "base/json/scan_text.h"
#include "base/mem.h"

enum {
    SHORT = 32, /* bytes of a container */
    FEW = 8,    /* members of an object */
};

/* ---- spans ---- */

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static struct slice skip_space(struct slice text)
{
    size_t at = 0;
    while (at < text.len && is_space(text.ptr[at]))
        at++;
    return at ? slice_from(text, at) : text;
}

static struct slice skip_char(struct slice text, char c)
{
    text = skip_space(text);
    return text.len && text.ptr[0] == c ? skip_space(slice_from(text, 1)) : text;
}

/* A quote ends a string if an even number of backslashes precedes it. */
static bool ends_string(const char *quote, const char *begin)
{
    const char *first = quote;
    while (first > begin && first[-1] == '\\')
        first--;
    return (quote - first) % 2 == 0;
}

/* Returns the length of a string with both quotes. */
static size_t string_length(struct slice text)
{
    size_t at = 1;
    while (at < text.len) {
        if (text.len - at >= 8 && !eight_have(eight_bytes(text.ptr + at), '"')) {
            at += 8;
            continue;
        }
        for (int i = 0; i < 8 && at < text.len; i++, at++)
            if (text.ptr[at] == '"' && ends_string(text.ptr + at, text.ptr + 1))
                return at + 1;
    }
    return text.len;
}

/* Most containers are short: only a longer one is read in blocks. */
static size_t container_length(struct slice text)
{
    size_t depth = 0, at = 0;
    for (; at < text.len && at < SHORT; at++) {
        char c = text.ptr[at];
        if (c == '"')
            at += string_length(slice_from(text, at)) - 1;
        else if (c == '{' || c == '[')
            depth++;
        else if ((c == '}' || c == ']') && --depth == 0)
            return at + 1;
    }
    if (at >= text.len)
        return text.len;
    return at + brackets_until_closed(slice_from(text, at), depth);
}

/* Returns the length of the value at the beginning of the text. */
static size_t value_length(struct slice text)
{
    char first = text.len ? text.ptr[0] : '\0';
    if (first == '"')
        return string_length(text);
    if (first == '{' || first == '[')
        return container_length(text);
    size_t at = 0;
    while (at < text.len && !is_space(text.ptr[at]) && text.ptr[at] != ',' &&
           text.ptr[at] != '}' && text.ptr[at] != ']')
        at++;
    return at;
}

static struct slice take_value(struct slice *rest)
{
    size_t len = value_length(*rest);
    struct slice value = { rest->ptr, len };
    *rest = slice_from(*rest, len);
    return value;
}

/* Returns a value without the quotes or brackets around it. */
static struct slice inner(struct slice value)
{
    return (struct slice){ value.ptr + 1, value.len < 2 ? 0 : value.len - 2 };
}

enum scan_type scan_type(struct slice value)
{
    value = skip_space(value);
    if (!value.len)
        return SCAN_NONE;
    switch (value.ptr[0]) {
    case 'n': return SCAN_NULL;
    case 'f': return SCAN_FALSE;
    case 't': return SCAN_TRUE;
    case '"': return SCAN_STRING;
    case '[': return SCAN_ARRAY;
    case '{': return SCAN_OBJECT;
    default: return SCAN_NUMBER;
    }
}

struct slice scan_unquoted(struct slice value)
{
    return scan_type(value) == SCAN_STRING ? inner(value) : (struct slice){ 0 };
}

bool scan_string(struct slice value, struct buf *out)
{
    struct slice raw = scan_unquoted(slice_trim(value));
    if (!raw.ptr)
        return false;
    scan_unescape(raw, out);
    return true;
}

struct scan_members scan_members(struct slice container)
{
    enum scan_type type = scan_type(container);
    if (type != SCAN_OBJECT && type != SCAN_ARRAY)
        return (struct scan_members){ 0 };
    return (struct scan_members){ skip_space(inner(slice_trim(container))) };
}

bool scan_next_element(struct scan_members *members, struct slice *value)
{
    struct slice rest = members->rest;
    if (!rest.len)
        return false;
    *value = take_value(&rest);
    rest = skip_char(rest, ',');
    if (rest.len == members->rest.len)
        rest.len = 0; /* not JSON: find nothing more */
    members->rest = rest;
    return true;
}

bool scan_next_member(struct scan_members *members, struct slice *key, struct slice *value)
{
    struct slice rest = members->rest;
    if (!rest.len || rest.ptr[0] != '"')
        return false;
    *key = inner(take_value(&rest));
    members->rest = skip_char(rest, ':');
    return scan_next_element(members, value);
}

struct slice scan_member(struct slice object, const char *name)
{
    struct slice wanted = slice_of(name), found = { 0 }, key, value;
    if (scan_type(object) != SCAN_OBJECT)
        return found;
    struct scan_members members = scan_members(object);
    while (scan_next_member(&members, &key, &value))
        if (scan_key_is(key, wanted))
            found = value;
    return found;
}

/* ---- numbers ---- */

/* Created once, never freed. strtod itself would follow the locale of the process, in which
 * the decimal point may be a comma. */
static locale_t plain_locale(void)
{
    static locale_t plain;
    if (!plain && !(plain = newlocale(LC_ALL_MASK, "C", NULL)))
        mem_exhausted();
    return plain;
}

bool scan_number(struct slice value, double *number)
{
    char few[64];
    value = slice_trim(value);
    if (scan_type(value) != SCAN_NUMBER)
        return false;
    char *digits = value.len < sizeof(few) ? few : mem_resize(NULL, value.len + 1);
    memcpy(digits, value.ptr, value.len);
    digits[value.len] = '\0';
    char *end;
    *number = strtod_l(digits, &end, plain_locale());
    bool is_whole = end == digits + value.len;
    if (digits != few)
        free(digits);
    return is_whole;
}

/* ---- comparing ---- */

/* The cost of a comparison, in nanoseconds, approximately. */
enum {
    COST_OF_VALUE = 32,
    COST_OF_ELEMENT = 64,
    COST_OF_NUMBER = 96,
    COST_OF_MEMBER = 64,     /* to keep it, and to compare it once */
    COST_OF_ESCAPED_BYTE = 4 /* other bytes cost one */
};

/* Deducts cost from the budget; if it is used up, sets it to 0 and returns false. */
static bool spend(uint64_t *left, uint64_t cost)
{
    *left = *left > cost ? *left - cost : 0;
    return *left > 0;
}

static uint64_t cost_of_bytes(struct slice text)
{
    return scan_text_has_escape(text) ? text.len * COST_OF_ESCAPED_BYTE : text.len;
}

struct name_and_value {
    struct slice key, value;
};

/* Orders members by name; of equal names, the last one comes first. */
static int compare_members(const void *a, const void *b)
{
    const struct name_and_value *x = a, *y = b;
    int order = scan_text_compare(x->key, y->key);
    return order ? order : (x->key.ptr < y->key.ptr) - (x->key.ptr > y->key.ptr);
}

/* Returns the cost of a sort, which compares each member log n times. */
static uint64_t cost_of_sorting(const struct name_and_value *members, size_t count)
{
    uint64_t once = 0, times = 1;
    for (size_t i = 0; i < count; i++)
        once += COST_OF_MEMBER + cost_of_bytes(members[i].key);
    while (count >>= 1)
        times++;
    return once * times;
}

/* The members of an object, sorted by name. Most objects have few. */
struct sorted {
    struct name_and_value few[FEW], *all; /* all: few, or allocated memory */
    size_t count;
};

static void sorted_finish(struct sorted *sorted)
{
    if (sorted->all != sorted->few)
        free(sorted->all);
}

static void add_member(struct sorted *sorted, struct buf *many,
                       struct name_and_value member)
{
    struct slice few = { (const char *)sorted->few, sizeof(sorted->few) };
    if (sorted->count++ < FEW) {
        sorted->few[sorted->count - 1] = member;
        return;
    }
    if (!many->len)
        buf_add(many, few);
    buf_add(many, (struct slice){ (const char *)&member, sizeof(member) });
    sorted->all = (struct name_and_value *)(void *)many->ptr;
}

static void sort_few(struct name_and_value *members, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        struct name_and_value member = members[i];
        size_t at = i;
        for (; at && compare_members(&members[at - 1], &member) > 0; at--)
            members[at] = members[at - 1];
        members[at] = member;
    }
}

/* Sorts the members of the object by name. Delivers none if the budget does not suffice. */
static void sort_members(struct slice object, struct sorted *sorted, uint64_t *left)
{
    struct buf many = { 0 };
    struct scan_members members = scan_members(object);
    struct name_and_value member;
    sorted->all = sorted->few;
    sorted->count = 0;
    if (!spend(left, object.len))
        return;
    while (scan_next_member(&members, &member.key, &member.value))
        add_member(sorted, &many, member);
    if (!spend(left, cost_of_sorting(sorted->all, sorted->count)))
        sorted->count = 0;
    else if (sorted->count <= FEW)
        sort_few(sorted->all, sorted->count);
    else
        qsort(sorted->all, sorted->count, sizeof(member), compare_members);
}

/* Keeps the last member of each name, like JSON.parse. Returns true if a name was
 * repeated. */
static bool drop_repeated(struct sorted *sorted)
{
    struct name_and_value *all = sorted->all;
    size_t kept = 0, count = sorted->count;
    for (size_t i = 0; i < count; i++)
        if (!kept || scan_text_compare(all[kept - 1].key, all[i].key) != 0)
            all[kept++] = all[i];
    sorted->count = kept;
    return kept < count;
}

bool scan_has_at_most(struct slice object, size_t most)
{
    struct scan_members members = scan_members(object);
    struct slice key, value;
    if (scan_type(object) != SCAN_OBJECT)
        return true;
    for (size_t count = 0; scan_next_member(&members, &key, &value);)
        if (++count > most)
            return false;
    return true;
}

bool scan_has_duplicate(struct slice object)
{
    uint64_t left = UINT64_MAX;
    if (scan_type(object) != SCAN_OBJECT)
        return false;
    struct sorted sorted;
    sort_members(object, &sorted, &left);
    bool repeated = drop_repeated(&sorted);
    sorted_finish(&sorted);
    return repeated;
}

static bool equal_at(struct slice a, struct slice b, unsigned depth, uint64_t *left);

static bool objects_equal(struct slice a, struct slice b, unsigned depth, uint64_t *left)
{
    if (!scan_members(a).rest.len != !scan_members(b).rest.len)
        return false; /* one of them is empty, the other is not */
    struct sorted in_a, in_b;
    sort_members(a, &in_a, left);
    sort_members(b, &in_b, left);
    drop_repeated(&in_a);
    drop_repeated(&in_b);
    bool equal = *left && in_a.count == in_b.count;
    for (size_t i = 0; i < in_a.count && equal; i++)
        equal = scan_text_compare(in_a.all[i].key, in_b.all[i].key) == 0 &&
                equal_at(in_a.all[i].value, in_b.all[i].value, depth + 1, left);
    sorted_finish(&in_a);
    sorted_finish(&in_b);
    return equal;
}

static bool arrays_equal(struct slice a, struct slice b, unsigned depth, uint64_t *left)
{
    struct scan_members in_a = scan_members(a), in_b = scan_members(b);
    struct slice x, y;
    for (;;) {
        bool more = scan_next_element(&in_a, &x);
        if (more != scan_next_element(&in_b, &y))
            return false;
        if (!more)
            return true;
        if (!spend(left, COST_OF_ELEMENT + x.len + y.len) ||
            !equal_at(x, y, depth + 1, left))
            return false;
    }
}

static bool numbers_equal(struct slice a, struct slice b, uint64_t *left)
{
    double x = 0, y = 0;
    return spend(left, COST_OF_NUMBER) && scan_number(a, &x) && scan_number(b, &y) &&
           x == y;
}

/* Recursive, and therefore bounded: a level takes up to 2 KiB of the stack. */
static bool equal_at(struct slice a, struct slice b, unsigned depth, uint64_t *left)
{
    a = slice_trim(a);
    b = slice_trim(b);
    if (slice_equal(a, b))
        return spend(left, COST_OF_VALUE + a.len / 8);
    enum scan_type type = scan_type(a);
    if (type != scan_type(b))
        return false;
    bool is_scalar = type != SCAN_ARRAY && type != SCAN_OBJECT;
    if (!is_scalar && depth == SCAN_EQUAL_DEPTH)
        return spend(left, UINT64_MAX);
    if (!spend(left, COST_OF_VALUE + (is_scalar ? cost_of_bytes(a) + cost_of_bytes(b) : 0)))
        return false;
    switch (type) {
    case SCAN_NUMBER: return numbers_equal(a, b, left);
    case SCAN_STRING: return scan_text_compare(inner(a), inner(b)) == 0;
    case SCAN_ARRAY: return arrays_equal(a, b, depth, left);
    case SCAN_OBJECT: return objects_equal(a, b, depth, left);
    default: return true;
    }
}

bool scan_equal_within(struct slice a, struct slice b, uint64_t *left)
{
    return equal_at(a, b, 0, left);
}

bool scan_equal(struct slice a, struct slice b)
{
    uint64_t left = UINT64_MAX;
    return scan_equal_within(a, b, &left);
}

bool scan_deeper_than(struct slice value, unsigned max)
{
    return brackets_deeper_than(value, max);
}

bool scan_has_more_members(struct slice value, size_t max)
{
    size_t count = 0;
    for (size_t at = 0; at < value.len; at++) {
        if (value.ptr[at] == '"')
            at += string_length(slice_from(value, at)) - 1;
        else if (value.ptr[at] == ':' && ++count > max)
            return true;
    }
    return false;
}
