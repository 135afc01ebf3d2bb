/* json_tree.c - builds a jansson tree with the readers of scan.h, and writes it as JSON. */
#include "base/json/json_tree.h"

#include <math.h>

#include "base/json/scan.h"
#include "base/text.h"

struct tree_reader {
    unsigned options;
    struct failure *why;
    struct buf text; /* scratch space for a decoded string */
};

static json_t *read_value(struct tree_reader *reader, struct slice value);

static bool has_zero(const struct buf *text)
{
    return text->len && memchr(text->ptr, '\0', text->len);
}

static json_t *json_tree_refuse(const struct tree_reader *reader, const char *what)
{
    if (reader->why)
        explain(reader->why, ERR_INVALID, "Invalid JSON: %s", what);
    return NULL;
}

static json_t *read_string(struct tree_reader *reader, struct slice value)
{
    buf_clear(&reader->text);
    scan_string(value, &reader->text);
    if (reader->options & TREE_NO_ZERO && has_zero(&reader->text))
        return json_tree_refuse(reader, "a text has a zero byte");
    return json_stringn_nocheck(reader->text.len ? reader->text.ptr : "", reader->text.len);
}

static json_t *read_number(const struct tree_reader *reader, struct slice value)
{
    int64_t integer;
    double real = 0;
    if (!(reader->options & TREE_REALS) && !text_to_i64(value, &integer))
        return json_integer(integer);
    scan_number(value, &real);
    return isfinite(real) ? json_real(real)
                          : json_tree_refuse(reader, "a number is too large");
}

static json_t *read_array(struct tree_reader *reader, struct slice value)
{
    struct scan_members elements = scan_members(value);
    struct slice element;
    json_t *array = json_array();
    while (scan_next_element(&elements, &element)) {
        json_t *one = read_value(reader, element);
        if (!one) {
            json_decref(array);
            return NULL;
        }
        json_array_append_new(array, one);
    }
    return array;
}

/* Returns the decoded, zero-terminated name, the caller's; NULL if it is rejected. */
static char *read_name(struct tree_reader *reader, const json_t *object, struct slice key)
{
    struct buf name = { 0 };
    scan_unescape(key, &name);
    const char *wrong = has_zero(&name) ? "the name of a member has a zero byte" : NULL;
    buf_add_char(&name, '\0');
    if (!wrong && reader->options & TREE_ONE_OF_EACH && json_object_get(object, name.ptr))
        wrong = "an object names a member twice";
    if (!wrong)
        return name.ptr;
    json_tree_refuse(reader, wrong);
    buf_finish(&name);
    return NULL;
}

static json_t *read_object(struct tree_reader *reader, struct slice value)
{
    struct scan_members members = scan_members(value);
    struct slice key, inner;
    json_t *object = json_object();
    while (scan_next_member(&members, &key, &inner)) {
        char *name = read_name(reader, object, key);
        json_t *one = name ? read_value(reader, inner) : NULL;
        if (one)
            json_object_set_new_nocheck(object, name, one);
        free(name);
        if (!one) {
            json_decref(object);
            return NULL;
        }
    }
    return object;
}

static json_t *read_value(struct tree_reader *reader, struct slice value)
{
    switch (scan_type(value)) {
    case SCAN_OBJECT: return read_object(reader, value);
    case SCAN_ARRAY: return read_array(reader, value);
    case SCAN_STRING: return read_string(reader, value);
    case SCAN_NUMBER: return read_number(reader, value);
    case SCAN_TRUE: return json_true();
    case SCAN_FALSE: return json_false();
    default: return json_null();
    }
}

json_t *json_tree_read(struct slice text, unsigned options, struct failure *why)
{
    struct tree_reader reader = { options, why, { 0 } };
    if (!scan_is_json(text))
        return json_tree_refuse(&reader, "the text is not JSON");
    if (scan_deeper_than(text, TREE_DEPTH_MAX))
        return json_tree_refuse(&reader, "the text is nested too deeply");
    json_t *tree = read_value(&reader, slice_trim(text));
    buf_finish(&reader.text);
    return tree;
}

/* ---- writing ---- */

static void write_array(const json_t *array, struct buf *out)
{
    size_t i;
    json_t *value;
    buf_add_char(out, '[');
    json_array_foreach(array, i, value)
    {
        if (i)
            buf_add_char(out, ',');
        json_tree_write(value, out);
    }
    buf_add_char(out, ']');
}

static void write_object(const json_t *object, struct buf *out)
{
    const char *name;
    json_t *value;
    bool is_first = true;
    buf_add_char(out, '{');
    json_object_foreach((json_t *)(uintptr_t)object, name, value)
    {
        if (!is_first)
            buf_add_char(out, ',');
        is_first = false;
        buf_add_json(out, slice_of(name));
        buf_add_char(out, ':');
        json_tree_write(value, out);
    }
    buf_add_char(out, '}');
}

void json_tree_write(const json_t *tree, struct buf *out)
{
    if (!tree)
        return;
    switch (json_typeof(tree)) {
    case JSON_OBJECT: write_object(tree, out); break;
    case JSON_ARRAY: write_array(tree, out); break;
    case JSON_STRING:
        buf_add_json(out,
                     (struct slice){ json_string_value(tree), json_string_length(tree) });
        break;
    case JSON_INTEGER: buf_add_number(out, json_integer_value(tree)); break;
    case JSON_REAL: buf_add_json_double(out, json_real_value(tree)); break;
    case JSON_TRUE: buf_add_text(out, "true"); break;
    case JSON_FALSE: buf_add_text(out, "false"); break;
    case JSON_NULL: buf_add_text(out, "null"); break;
    }
}
