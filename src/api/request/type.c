/* type.c - translates types from our short notation into JSON Schema (2020-12).
 *
 *   union = primary { "|" primary }       all words: an enumeration
 *   primary = ( word | name [ "(" least ".." most ")" ] | object ) { "[]" }
 *
 * It parses by recursive descent. The types are part of the program: a mistake in one fails
 * an assertion, which a test triggers. */
#include "api/request/type.h"

#include <assert.h>
#include <ctype.h>

static void skip_space(const char **at)
{
    while (**at == ' ' || **at == '\n')
        (*at)++;
}

static bool skip(const char **at, const char *text)
{
    skip_space(at);
    size_t len = strlen(text);
    if (strncmp(*at, text, len) != 0)
        return false;
    *at += len;
    return true;
}

static struct slice take_until(const char **at, const char *ends)
{
    skip_space(at);
    struct slice word = { *at, strcspn(*at, ends) };
    *at += word.len;
    assert(word.len > 0);
    return word;
}

static void add_union(const char **at, struct buf *out);

/* ---- names ---- */

static void add_range(const char **at, const char *least, const char *most, struct buf *out)
{
    if (!skip(at, "("))
        return;
    struct slice from = take_until(at, ".");
    bool fine = skip(at, "..");
    struct slice to = take_until(at, ")");
    fine = fine && skip(at, ")");
    assert(fine);
    (void)fine;
    buf_print(out, ",\"%s\":%.*s,\"%s\":%.*s", least, SLICE_ARG(from), most, SLICE_ARG(to));
}

static void add_name(const char **at, struct buf *out)
{
    struct slice name = take_until(at, " ,|()[]{}\n");
    bool is_text = slice_is(name, "string");
    if (isupper((unsigned char)name.ptr[0])) {
        buf_print(out, "{\"$ref\":\"#/components/schemas/%.*s\"}", SLICE_ARG(name));
    } else if (slice_is(name, "any")) {
        buf_add_text(out, "{}");
    } else if (slice_is(name, "datetime")) {
        buf_add_text(out, "{\"type\":\"string\",\"format\":\"date-time\"}");
    } else {
        assert(is_text || slice_is(name, "integer") || slice_is(name, "number") ||
               slice_is(name, "boolean") || slice_is(name, "null"));
        buf_print(out, "{\"type\":\"%.*s\"", SLICE_ARG(name));
        add_range(at, is_text ? "minLength" : "minimum", is_text ? "maxLength" : "maximum",
                  out);
        buf_add_char(out, '}');
    }
}

/* ---- objects ---- */

static bool begin_field(const char **text, struct type_field *field)
{
    skip_space(text);
    if (!**text || **text == '}' || !strncmp(*text, "...", 3))
        return false;
    field->name = take_until(text, "?:");
    field->is_optional = skip(text, "?");
    bool fine = skip(text, ":");
    assert(fine);
    (void)fine;
    return true;
}

bool type_next_field(const char **text, struct type_field *field, struct buf *type)
{
    if (!begin_field(text, field))
        return false;
    add_union(text, type);
    skip(text, ",");
    return true;
}

struct slice type_skip(const char **text, const char *ends)
{
    unsigned depth = 0;
    skip_space(text);
    struct slice type = { *text, 0 };
    for (char c; (c = **text) && (depth || !strchr(ends, c)); (*text)++) {
        depth += c == '{' || c == '(';
        depth -= c == '}' || c == ')';
    }
    type.len = (size_t)(*text - type.ptr);
    return slice_trim(type);
}

bool type_skip_field(const char **text, struct type_field *field, struct slice *type)
{
    if (!begin_field(text, field))
        return false;
    *type = type_skip(text, ",}");
    skip(text, ",");
    return true;
}

static void add_object(const char **at, struct buf *out)
{
    struct buf properties = { 0 }, required = { 0 }, others = { 0 }, type = { 0 };
    struct type_field field;

    while (type_next_field(at, &field, &type)) {
        if (slice_is(field.name, "*")) {
            buf_add(&others, buf_slice(&type));
        } else {
            buf_print(&properties, "%s\"%.*s\":", properties.len ? "," : "",
                      SLICE_ARG(field.name));
            buf_add(&properties, buf_slice(&type));
        }
        if (!field.is_optional && !slice_is(field.name, "*"))
            buf_print(&required, "%s\"%.*s\"", required.len ? "," : "",
                      SLICE_ARG(field.name));
        buf_clear(&type);
    }
    if (skip(at, "..."))
        buf_add_text(&others, "true");
    bool fine = skip(at, "}");
    assert(fine);
    (void)fine;
    buf_add_text(out, "{\"type\":\"object\",\"properties\":{");
    buf_add(out, buf_slice(&properties));
    buf_add_text(out, "},\"required\":[");
    buf_add(out, buf_slice(&required));
    buf_add_text(out, "],\"additionalProperties\":");
    buf_add(out, others.len ? buf_slice(&others) : SLICE("false"));
    buf_add_char(out, '}');
    buf_finish(&properties);
    buf_finish(&required);
    buf_finish(&others);
    buf_finish(&type);
}

/* ---- types ---- */

/* Adds one of the types of a union. Returns true for a word like 'x', of which only the
 * quoted text is added. */
static bool add_primary(const char **at, struct buf *out)
{
    struct buf one = { 0 };
    skip_space(at);
    if (skip(at, "'")) {
        struct slice word = take_until(at, "'");
        (*at)++;
        buf_print(out, "\"%.*s\"", SLICE_ARG(word));
        return true;
    }
    if (skip(at, "{"))
        add_object(at, &one);
    else
        add_name(at, &one);
    while (skip(at, "[]")) {
        struct buf items = one;
        one = (struct buf){ 0 };
        buf_add_text(&one, "{\"type\":\"array\",\"items\":");
        buf_add(&one, buf_slice(&items));
        buf_add_char(&one, '}');
        buf_finish(&items);
    }
    buf_add(out, buf_slice(&one));
    buf_finish(&one);
    return false;
}

static void add_union(const char **at, struct buf *out)
{
    struct buf words = { 0 }, others = { 0 }, one = { 0 };
    unsigned count = 0;
    do {
        buf_clear(&one);
        struct buf *list = add_primary(at, &one) ? &words : &others;
        count += list == &others;
        if (list->len)
            buf_add_char(list, ',');
        buf_add(list, buf_slice(&one));
    } while (skip(at, "|"));
    bool is_union = count + (words.len > 0) > 1;
    if (is_union)
        buf_add_text(out, "{\"anyOf\":[");
    buf_add(out, buf_slice(&others));
    if (words.len)
        buf_print(out, "%s{\"type\":\"string\",\"enum\":[%.*s]}", others.len ? "," : "",
                  SLICE_ARG(buf_slice(&words)));
    if (is_union)
        buf_add_text(out, "]}");
    buf_finish(&words);
    buf_finish(&others);
    buf_finish(&one);
}

void type_add_schema(const char *type, struct buf *out)
{
    add_union(&type, out);
    skip_space(&type);
    assert(!*type);
}
