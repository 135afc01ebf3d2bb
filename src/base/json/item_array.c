/* item_array.c - finds where the array of items begins and ends, and its commas.
 *
 * Everything else is passed to an envelope, which checks that it is JSON. */
#include "base/json/item_array.h"

#include "base/json/scan.h"

void item_array_finish(struct item_array *array)
{
    envelope_finish(&array->outer);
    envelope_finish(&array->item);
}

static enum err not_json(struct item_array *array)
{
    return explain(array->why, ERR_INVALID, "Invalid JSON in \"items[%zu]\" or before it",
                   array->count);
}

static bool is_blank(const struct envelope *envelope)
{
    return !slice_trim(buf_slice(&envelope->text)).len;
}

static enum err end_item(struct item_array *array)
{
    struct failure why;
    if (is_blank(&array->item))
        return not_json(array);
    enum err err = envelope_close(&array->item, &why);
    if (err)
        return explain(array->why, err, "%s (items[%zu])", why.text, array->count);
    err = array->on_item(array);
    array->count++;
    envelope_clear(&array->item);
    return err;
}

/* Returns where the item ends in this piece: at a comma, at the array's end, or not yet. */
static size_t find_end(struct item_array *array, struct slice piece)
{
    for (size_t at = 0; at < piece.len; at++) {
        char c = piece.ptr[at];
        if (array->after_backslash)
            array->after_backslash = false;
        else if (array->in_string && c == '\\')
            array->after_backslash = true;
        else if (c == '"')
            array->in_string = !array->in_string;
        else if (array->in_string)
            continue;
        else if (!array->depth && (c == ',' || c == ']'))
            return at;
        else if (c == '{' || c == '[')
            array->depth++;
        else if (array->depth && (c == '}' || c == ']'))
            array->depth--;
    }
    return piece.len;
}

static enum err take_inside(struct item_array *array, struct slice *piece)
{
    size_t end = find_end(array, *piece);
    if (envelope_feed(&array->item, (struct slice){ piece->ptr, end }))
        return not_json(array);
    *piece = slice_from(*piece, end);
    if (!piece->len)
        return OK;
    bool over = piece->ptr[0] == ']';
    enum err err = OK;
    if (!over || array->count || !is_blank(&array->item))
        err = end_item(array);
    if (over) {
        array->inside = false; /* the bracket belongs to the outer object */
        envelope_clear(&array->item);
    } else {
        *piece = slice_from(*piece, 1);
    }
    return err;
}

/* Returns true if the bracket that was just taken opened the array of items. */
static bool at_items(const struct envelope *outer)
{
    struct slice key = { outer->text.ptr + outer->member.key, outer->member.key_len };
    return !outer->in_string && outer->depth == 2 && outer->key_done &&
           scan_key_is(key, SLICE("items"));
}

static enum err take_outside(struct item_array *array, struct slice *piece)
{
    const char *bracket = memchr(piece->ptr, '[', piece->len);
    size_t len = bracket ? (size_t)(bracket - piece->ptr) + 1 : piece->len;
    if (envelope_feed(&array->outer, (struct slice){ piece->ptr, len }))
        return not_json(array);
    *piece = slice_from(*piece, len);
    array->inside = bracket && at_items(&array->outer);
    return OK;
}

enum err item_array_feed(struct item_array *array, struct slice piece)
{
    enum err err = OK;
    while (piece.len && !err)
        err = array->inside ? take_inside(array, &piece) : take_outside(array, &piece);
    return err;
}

enum err item_array_close(struct item_array *array)
{
    enum err err = envelope_close(&array->outer, array->why);
    if (!err && scan_type(envelope_get(&array->outer, "items")) != SCAN_ARRAY)
        err = explain(array->why, ERR_INVALID,
                      "Validation error: Expected array at \"items\"");
    return err;
}
