/* otlp_parts.c - follows the brackets of a body, and collects its records. */
#include "api/telemetry/otlp_parts.h"

#include <string.h>

static const char path[OTLP_PARTS_DEPTH + 1] = "{[{[{[", closing[] = "]}]}]}";

void otlp_parts_finish(struct otlp_parts *parts)
{
    buf_finish(&parts->text);
    buf_finish(&parts->around);
    *parts = (struct otlp_parts){ 0 };
}

/* Returns true between the records of a list. */
static bool is_among_records(const struct otlp_parts *parts)
{
    return parts->depth == OTLP_PARTS_DEPTH &&
           memcmp(parts->open, path, OTLP_PARTS_DEPTH) == 0;
}

static bool is_in_record(const struct otlp_parts *parts)
{
    return parts->depth > OTLP_PARTS_DEPTH &&
           memcmp(parts->open, path, OTLP_PARTS_DEPTH) == 0;
}

static void follow_string(struct otlp_parts *parts, char c)
{
    if (parts->after_backslash)
        parts->after_backslash = false;
    else if (c == '\\')
        parts->after_backslash = true;
    else if (c == '"')
        parts->in_string = false;
}

static void follow(struct otlp_parts *parts, char c)
{
    if (parts->in_string) {
        follow_string(parts, c);
    } else if (c == '"') {
        parts->in_string = true;
    } else if (c == '{' || c == '[') {
        if (parts->depth < OTLP_PARTS_DEPTH)
            parts->open[parts->depth] = c;
        parts->depth++;
    } else if ((c == '}' || c == ']') && parts->depth) {
        parts->depth--;
    }
}

/* Forgets the record that is being collected, and the comma before it. */
static void skip_record(struct otlp_parts *parts)
{
    parts->text.len = parts->whole;
    parts->skips = true;
    parts->skipped++;
}

/* Checks the length of the text collected since the last whole record. */
static void check_item(struct otlp_parts *parts)
{
    if (parts->skips || parts->text.len - parts->whole <= OTLP_ITEM_MAX)
        return;
    if (is_in_record(parts))
        skip_record(parts);
    else
        parts->too_long = true;
}

/* Called at the end of a record. */
static void end_record(struct otlp_parts *parts)
{
    if (parts->skips)
        parts->drops_comma = parts->text.ptr[parts->text.len - 1] == '[';
    else
        parts->whole = parts->text.len;
    parts->skips = false;
}

/* Takes a byte that may open or close something. */
static void take_byte(struct otlp_parts *parts, char c)
{
    bool in_record = is_in_record(parts), among = is_among_records(parts);
    follow(parts, c);
    bool in_record_now = is_in_record(parts), among_now = is_among_records(parts);
    if (among && c == ',' && parts->drops_comma) {
        parts->drops_comma = false;
        return;
    }
    if (!parts->skips)
        buf_add_char(&parts->text, c);
    if (in_record && !in_record_now) {
        end_record(parts);
    } else if (!in_record && !in_record_now && !(among && among_now)) {
        buf_add_char(&parts->around, c);
        parts->whole = parts->text.len;
        parts->drops_comma = false;
    } else {
        check_item(parts);
    }
}

/* Returns how many of the first bytes open and close nothing. */
static size_t plain_length(const struct otlp_parts *parts, struct slice bytes)
{
    size_t len = 0;
    if (parts->after_backslash)
        return 0;
    if (parts->in_string)
        while (len < bytes.len && bytes.ptr[len] != '"' && bytes.ptr[len] != '\\')
            len++;
    else
        while (len < bytes.len && !memchr("{}[],\"", bytes.ptr[len], 6))
            len++;
    return len;
}

static void take_plain(struct otlp_parts *parts, struct slice bytes)
{
    if (!bytes.len)
        return;
    if (!parts->skips)
        buf_add(&parts->text, bytes);
    if (!is_in_record(parts) && !is_among_records(parts)) {
        buf_add(&parts->around, bytes);
        parts->whole = parts->text.len;
    } else {
        check_item(parts);
    }
}

static bool is_full(const struct otlp_parts *parts)
{
    return is_among_records(parts) && parts->whole == parts->text.len &&
           parts->text.len >= parts->around.len + OTLP_PART_BYTES;
}

bool otlp_parts_take(struct otlp_parts *parts, struct slice *piece)
{
    bool full = false;
    while (!full && piece->len) {
        size_t plain = plain_length(parts, *piece);
        take_plain(parts, (struct slice){ piece->ptr, plain });
        *piece = slice_from(*piece, plain);
        if (!piece->len)
            break;
        take_byte(parts, piece->ptr[0]);
        *piece = slice_from(*piece, 1);
        full = is_full(parts);
    }
    return full;
}

struct buf otlp_parts_cut(struct otlp_parts *parts)
{
    struct buf part = parts->text;
    buf_add_text(&part, closing);
    parts->text = (struct buf){ 0 };
    buf_add(&parts->text, buf_slice(&parts->around));
    parts->whole = parts->text.len;
    parts->drops_comma = true;
    return part;
}

struct buf otlp_parts_end(struct otlp_parts *parts)
{
    struct buf part = parts->text;
    parts->text = (struct buf){ 0 };
    return part;
}

enum err otlp_parts_check(const struct otlp_parts *parts, struct failure *why)
{
    if (parts->around.len > OTLP_AROUND_MAX)
        return explain(
            why, ERR_TOO_LARGE,
            "The resources and scopes of the telemetry are too long (max %d KiB)",
            OTLP_AROUND_MAX >> 10);
    if (parts->too_long)
        return explain(
            why, ERR_TOO_LARGE,
            "The telemetry has text between two records that is too long (max %d "
            "MiB); a list of records contains only objects",
            OTLP_ITEM_MAX >> 20);
    return OK;
}

size_t otlp_parts_size(const struct otlp_parts *parts)
{
    return parts->text.capacity + parts->around.capacity;
}
