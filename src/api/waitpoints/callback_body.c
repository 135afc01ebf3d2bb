/* callback_body.c - converts the forms and texts of webhooks to JSON. */
#include "api/waitpoints/callback_body.h"

#include <limits.h>
#include <stdlib.h>
#include <strings.h>

#include "api/artifacts/multipart.h"
#include "base/json/scan.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/table.h"
#include "base/text.h"
#include "base/utf8.h"

/* Offsets into form.text, which may move while it grows. */
struct callback_field {
    size_t name_at, name_len, value_at, value_len;
    struct slice name; /* set once the form has been read */
    struct callback_field *next,
        *last; /* of the same name; last: valid in the first one only */
};

struct form {
    struct multipart parts; /* first; used for multipart/form-data only */
    struct callback_field *fields;
    size_t count;
    struct buf text;
    bool skips_file;
    struct failure *why;
};

/* ---- text ---- */

/* Returns the length of the first character in bytes; 0 if it is not UTF-8. */
static size_t character_len(struct slice text)
{
    uint8_t low, high;
    unsigned char first = (unsigned char)text.ptr[0];
    if (first < 0x80)
        return 1;
    size_t more = utf8_lead(first, &low, &high);
    if (!more || text.len <= more)
        return 0;
    for (size_t i = 1; i <= more; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        if (c < (i == 1 ? low : 0x80) || c > (i == 1 ? high : 0xBF))
            return 0;
    }
    return more + 1;
}

/* Returns the number of bytes at the front that are UTF-8. */
static size_t valid_len(struct slice text)
{
    size_t valid = 0, len;
    while (valid < text.len && (len = character_len(slice_from(text, valid))))
        valid += len;
    return valid;
}

static void add_repaired(struct buf *out, struct slice text)
{
    while (text.len) {
        size_t valid = valid_len(text);
        buf_add(out, (struct slice){ text.ptr, valid });
        text = slice_from(text, valid);
        if (!text.len)
            break;
        buf_add(out, SLICE("\xEF\xBF\xBD"));
        text = slice_from(text, 1);
    }
}

static void add_string(struct buf *out, struct slice text)
{
    struct buf repaired = { 0 };
    if (text_is_utf8(text)) {
        buf_add_json(out, text);
        return;
    }
    add_repaired(&repaired, text);
    buf_add_json(out, buf_slice(&repaired));
    buf_finish(&repaired);
}

/* ---- fields ---- */

static struct callback_field *add_field(struct form *form)
{
    if (form->count == CALLBACK_FIELDS_MAX) {
        explain(form->why, ERR_TOO_LARGE,
                "The form has too many fields (max %d); send fewer, or JSON",
                CALLBACK_FIELDS_MAX);
        return NULL;
    }
    if (!form->fields)
        form->fields = mem_new_array(struct callback_field, CALLBACK_FIELDS_MAX);
    struct callback_field *field = &form->fields[form->count++];
    *field =
        (struct callback_field){ .name_at = form->text.len, .value_at = form->text.len };
    return field;
}

static struct slice field_key(const void *value)
{
    const struct callback_field *field = value;
    return field->name;
}

/* Chains the fields of each name and puts only the first of them into the table. */
static void chain_fields(struct form *form, struct table *firsts)
{
    table_init(firsts, field_key);
    for (size_t i = 0; i < form->count; i++) {
        struct callback_field *field = &form->fields[i];
        field->name = (struct slice){ form->text.ptr + field->name_at, field->name_len };
        struct callback_field *first = table_find(firsts, field->name);
        if (first)
            first->last = first->last->next = field;
        else
            table_insert(firsts, field);
        field->last = field;
    }
}

static void add_values(const struct form *form, const struct callback_field *first,
                       struct buf *out)
{
    bool is_array = first->next;
    if (is_array)
        buf_add_char(out, '[');
    for (const struct callback_field *field = first; field; field = field->next) {
        if (field != first)
            buf_add_char(out, ',');
        add_string(out,
                   (struct slice){ form->text.ptr + field->value_at, field->value_len });
    }
    if (is_array)
        buf_add_char(out, ']');
}

static void add_object(struct form *form, struct buf *out)
{
    struct table firsts;
    chain_fields(form, &firsts);
    buf_add_char(out, '{');
    for (size_t i = 0; i < form->count; i++) {
        const struct callback_field *field = &form->fields[i];
        if (table_find(&firsts, field->name) != field)
            continue;
        if (out->ptr[out->len - 1] != '{')
            buf_add_char(out, ',');
        add_string(out, field->name);
        buf_add_char(out, ':');
        add_values(form, field, out);
    }
    buf_add_char(out, '}');
    table_finish(&firsts);
}

/* ---- application/x-www-form-urlencoded ---- */

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Decodes like browsers do: an invalid escape stays unchanged. */
static size_t add_decoded(struct buf *out, struct slice text)
{
    size_t begin = out->len;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        bool is_escape = c == '%' && text.len - i > 2 && hex_value(text.ptr[i + 1]) >= 0 &&
                         hex_value(text.ptr[i + 2]) >= 0;
        if (is_escape) {
            c = (char)(hex_value(text.ptr[i + 1]) << 4 | hex_value(text.ptr[i + 2]));
            i += 2;
        }
        buf_add_char(out, c == '+' && !is_escape ? ' ' : c);
    }
    return out->len - begin;
}

static enum err read_pairs(struct form *form, struct slice body)
{
    struct slice pair, name;
    while (slice_split(&body, '&', &pair)) {
        if (!pair.len)
            continue;
        struct callback_field *field = add_field(form);
        if (!field)
            return ERR_TOO_LARGE;
        slice_split(&pair, '=', &name);
        field->name_len = add_decoded(&form->text, name);
        field->value_at = form->text.len;
        field->value_len = add_decoded(&form->text, pair);
    }
    return OK;
}

/* ---- multipart/form-data ---- */

static enum err on_part(struct multipart *parts, struct slice name, bool is_file)
{
    struct form *form = container_of(parts, struct form, parts);
    form->skips_file = is_file;
    if (is_file)
        return OK;
    struct callback_field *field = add_field(form);
    if (!field)
        return ERR_TOO_LARGE;
    buf_add(&form->text, name);
    field->name_len = name.len;
    field->value_at = form->text.len;
    return OK;
}

static enum err on_content(struct multipart *parts, struct slice piece)
{
    struct form *form = container_of(parts, struct form, parts);
    if (form->skips_file)
        return OK;
    buf_add(&form->text, piece);
    form->fields[form->count - 1].value_len += piece.len;
    return OK;
}

static enum err on_part_end(struct multipart *parts)
{
    (void)parts;
    return OK;
}

/* Reads the fields of a form. A malformed one has no fields. */
static enum err read_parts(struct form *form, struct slice content_type, struct slice body)
{
    struct failure why;
    form->parts = (struct multipart){ .on_part = on_part,
                                      .on_content = on_content,
                                      .on_part_end = on_part_end,
                                      .parts_max = UINT_MAX, /* fields are counted here */
                                      .why = &why };
    enum err err = multipart_init(&form->parts, content_type);
    err = err ? err : multipart_feed(&form->parts, body);
    err = err ? err : multipart_end(&form->parts);
    multipart_finish(&form->parts);
    if (err)
        form->count = 0;
    return err == ERR_TOO_LARGE ? err : OK;
}

/* ---- by type ---- */

/* Returns the type without its parameters. */
static struct slice media_type(struct slice content_type)
{
    struct slice type;
    if (!slice_split(&content_type, ';', &type))
        return (struct slice){ 0 };
    return slice_trim(type);
}

static bool is_type(struct slice type, const char *name)
{
    return type.len == strlen(name) && !strncasecmp(type.ptr, name, type.len);
}

static bool is_text(struct slice type)
{
    return type.len >= 5 && !strncasecmp(type.ptr, "text/", 5) &&
           !is_type(type, "text/xml");
}

static enum err read_by_type(struct slice content_type, struct slice body,
                             struct buf *output, struct failure *why)
{
    struct slice type = media_type(content_type);
    struct form form = { .why = why };
    enum err err = OK;
    if (is_text(type)) {
        add_string(output, body);
        return OK;
    }
    if (is_type(type, "application/x-www-form-urlencoded"))
        err = read_pairs(&form, body);
    else if (is_type(type, "multipart/form-data"))
        err = read_parts(&form, content_type, body);
    if (!err)
        add_object(&form, output);
    free(form.fields);
    buf_finish(&form.text);
    return err;
}

enum err callback_body_read(struct slice content_type, struct slice body,
                            struct buf *output, struct failure *why)
{
    struct slice trimmed = slice_trim(body);
    enum err err = OK;
    if (!trimmed.len)
        buf_add_text(output, "{}");
    else if (scan_is_json(trimmed))
        buf_add(output, trimmed);
    else
        err = read_by_type(content_type, body, output, why);
    if (!err && output->len > CALLBACK_OUTPUT_MAX)
        err = explain(why, ERR_TOO_LARGE, "The output as JSON is too large (max %d bytes)",
                      CALLBACK_OUTPUT_MAX);
    return err;
}
