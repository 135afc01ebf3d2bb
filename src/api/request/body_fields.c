/* body_fields.c - collects and validates the pieces of a body, and sets long strings aside.
 *
 *   …"output":"abc…   more than LONG ─► text: …"output":"\1<index>", aside[index]: abc…
 *
 * The mark begins with a control character, which no valid JSON has inside a string. */
#include "api/request/body_fields.h"

#include "base/json/scan.h"
#include "base/mem.h"

enum {
    LONG = 32 * 1024,
    ASIDE_DEPTH = 2,
    ANY_ASIDE_DEPTH = 5,
    MARK = 1,
    CUT_CHARACTER = 3, /* bytes that may be left of a UTF-8 character that was cut */
};

struct aside {
    struct buf text;  /* decoded; only its beginning, if it is cut */
    size_t len;       /* bytes, including those not kept */
    struct scan scan; /* whether that text is JSON itself */
};

struct body_fields {
    struct scan scan;
    struct buf text;
    struct aside *aside;
    size_t aside_count;
    size_t aside_depth;  /* deeper strings stay in text */
    size_t aside_room;   /* bytes of long strings that may still be kept */
    size_t aside_memory; /* bytes that their texts take */
    struct buf rest;     /* last decoded part of a cut string: only its length counts */
    struct failure lost; /* why body_fields_take_any keeps nothing of the body */

    /* The position in the body, unless body_fields_take takes it. */
    size_t depth;
    size_t string_at; /* offset of its first character in text */
    bool in_string, after_backslash;
    bool setting_aside;
    struct scan_text escapes;
};

static void keep_nothing(struct body_fields *fields)
{
    for (size_t i = 0; i < fields->aside_count; i++) {
        buf_finish(&fields->aside[i].text);
        scan_finish(&fields->aside[i].scan);
    }
    scan_finish(&fields->scan);
    free(fields->aside);
    buf_finish(&fields->text);
    buf_finish(&fields->rest);
    fields->aside = NULL;
    fields->aside_count = 0;
}

void body_fields_free(struct body_fields *fields)
{
    if (!fields)
        return;
    keep_nothing(fields);
    free(fields);
}

/* ---- decoding what is set aside ---- */

static bool is_cut(const struct aside *aside)
{
    return aside->text.len != aside->len;
}

/* Keeps only the beginning of a text that does not fit. The rest of its bytes may be used
 * by other texts. The first `before` bytes of the text were taken from aside_room
 * already. */
static void cut(struct body_fields *fields, struct aside *aside, size_t before)
{
    struct slice text = buf_slice(&aside->text);
    struct buf beginning = { 0 };
    fields->aside_room += before;
    text.len =
        fields->aside_room < BODY_FIELDS_CUT_MAX ? fields->aside_room : BODY_FIELDS_CUT_MAX;
    text.len = text.len < aside->text.len ? text.len : aside->text.len;
    fields->aside_room -= text.len;
    if (text.len)
        buf_add(&beginning, text);
    buf_finish(&aside->text);
    aside->text = beginning;
    scan_finish(&aside->scan);
}

static void unescape(struct body_fields *fields, struct slice raw, bool is_last,
                     struct buf *out)
{
    scan_text_feed(&fields->escapes, raw, out);
    if (is_last)
        scan_text_end(&fields->escapes, out);
}

static void decode(struct body_fields *fields, struct slice raw, bool is_last)
{
    struct aside *aside = &fields->aside[fields->aside_count - 1];
    size_t before = aside->text.len, memory = aside->text.capacity;
    if (is_cut(aside)) {
        buf_clear(&fields->rest);
        unescape(fields, raw, is_last, &fields->rest);
        aside->len += fields->rest.len;
        return;
    }
    unescape(fields, raw, is_last, &aside->text);
    aside->len = aside->text.len;
    if (aside->len - before <= fields->aside_room) {
        fields->aside_room -= aside->len - before;
        scan_feed(&aside->scan, slice_from(buf_slice(&aside->text), before));
    } else {
        cut(fields, aside, before);
    }
    fields->aside_memory += aside->text.capacity - memory;
}

/* Sets the current string aside, because it turned out to be long. */
static void set_aside(struct body_fields *fields)
{
    size_t index = fields->aside_count++;
    fields->aside = mem_resize(fields->aside, fields->aside_count * sizeof(struct aside));
    fields->aside[index] = (struct aside){ 0 };
    scan_init(&fields->aside[index].scan);
    fields->setting_aside = true;
    decode(fields, slice_from(buf_slice(&fields->text), fields->string_at), false);
    fields->text.len = fields->string_at;
    buf_print(&fields->text, "%c%zu", MARK, index);
}

/* Returns NULL if the value was not set aside. */
static struct aside *aside_of(struct body_fields *fields, struct slice value)
{
    size_t index = 0;
    if (scan_type(value) != SCAN_STRING || value.len < 3 || value.ptr[1] != MARK)
        return NULL;
    for (size_t i = 2; i + 1 < value.len; i++)
        index = index * 10 + (size_t)(value.ptr[i] - '0');
    return &fields->aside[index];
}

bool body_fields_string(struct body_fields *fields, struct slice value, struct buf *out)
{
    const struct aside *aside = aside_of(fields, slice_trim(value));
    if (!aside)
        return scan_string(value, out);
    buf_add(out, buf_slice(&aside->text));
    return true;
}

/* Returns the length of the longest prefix that fits and cuts no character. */
static size_t whole_characters(struct slice text, size_t most)
{
    if (text.len <= most)
        return text.len;
    while (most && ((unsigned char)text.ptr[most] & 0xC0) == 0x80)
        most--;
    return most;
}

bool body_fields_begin(struct body_fields *fields, struct slice value, size_t most,
                       struct buf *out, size_t *len)
{
    const struct aside *aside = aside_of(fields, slice_trim(value));
    size_t before = out->len;
    if (aside) {
        struct slice text = buf_slice(&aside->text);
        size_t half = is_cut(aside) ? CUT_CHARACTER : 0;
        size_t kept = text.len > half ? text.len - half : 0;
        *len = aside->len;
        text.len = whole_characters(text, most < kept ? most : kept);
        buf_add(out, text);
        return true;
    }
    if (!scan_string(value, out))
        return false;
    *len = out->len - before;
    out->len = before + whole_characters(slice_from(buf_slice(out), before), most);
    return true;
}

bool body_fields_has_mark(struct slice value)
{
    return value.len && memchr(value.ptr, MARK, value.len);
}

bool body_fields_is_cut(struct body_fields *fields, struct slice value, size_t *len)
{
    const struct aside *aside = aside_of(fields, slice_trim(value));
    if (!aside || !is_cut(aside))
        return false;
    *len = aside->len;
    return true;
}

struct bytes *body_fields_bytes(struct body_fields *fields, struct slice value)
{
    struct aside *aside = aside_of(fields, slice_trim(value));
    struct buf text = { 0 };
    if (!aside) {
        bool is_string = scan_string(value, &text);
        struct bytes *bytes = is_string ? bytes_create(buf_slice(&text)) : NULL;
        buf_finish(&text);
        return bytes;
    }
    struct bytes *bytes = buf_take(&aside->text); /* nothing is copied */
    bytes->json = scan_finish(&aside->scan) ? BYTES_NO_JSON : BYTES_JSON;
    return bytes;
}

/* ---- following strings and depth ---- */

static size_t inside_length(struct body_fields *fields, struct slice rest)
{
    for (size_t i = 0; i < rest.len; i++) {
        if (fields->after_backslash)
            fields->after_backslash = false;
        else if (rest.ptr[i] == '\\')
            fields->after_backslash = true;
        else if (rest.ptr[i] == '"')
            return i;
    }
    return rest.len;
}

/* Returns the length up to the quote that begins a string. */
static size_t outside_length(struct body_fields *fields, struct slice rest)
{
    for (size_t i = 0; i < rest.len; i++) {
        char c = rest.ptr[i];
        if (c == '"')
            return i;
        fields->depth += c == '{' || c == '[';
        fields->depth -= c == '}' || c == ']';
    }
    return rest.len;
}

static void add_inside(struct body_fields *fields, struct slice part)
{
    if (fields->setting_aside) {
        decode(fields, part, false);
        return;
    }
    buf_add(&fields->text, part);
    if (fields->depth <= fields->aside_depth && fields->text.len - fields->string_at > LONG)
        set_aside(fields);
}

static void follow(struct body_fields *fields, struct slice rest)
{
    while (rest.len) {
        size_t len =
            fields->in_string ? inside_length(fields, rest) : outside_length(fields, rest);
        struct slice part = { rest.ptr, len };
        if (fields->in_string)
            add_inside(fields, part);
        else
            buf_add(&fields->text, part);
        if (len == rest.len)
            return;
        if (fields->setting_aside)
            decode(fields, SLICE(""), true);
        buf_add_char(&fields->text, '"');
        fields->in_string = !fields->in_string;
        fields->setting_aside = false;
        fields->string_at = fields->text.len;
        rest = slice_from(rest, len + 1);
    }
}

/* ---- the body ---- */

static struct body_fields *take_out(struct api_call *call)
{
    struct body_fields *fields = call->state;
    call->state = NULL;
    call->on_gone = NULL;
    return fields;
}

/* The client disconnected in the middle of its body. */
static void on_gone(struct api_call *call)
{
    body_fields_free(take_out(call));
    api_reply_gone(call);
}

static struct body_fields *fields_of(struct api_call *call)
{
    struct body_fields *fields = call->state;
    if (fields)
        return fields;
    fields = call->state = mem_new(struct body_fields);
    fields->aside_depth = ASIDE_DEPTH;
    fields->aside_room = SIZE_MAX;
    call->on_gone = on_gone;
    scan_init(&fields->scan);
    return fields;
}

static enum err check(struct api_call *call, struct slice piece)
{
    struct body_fields *fields = fields_of(call);
    if (!scan_feed(&fields->scan, piece))
        return OK;
    scan_explain(&fields->scan, &call->why);
    body_fields_free(take_out(call));
    return ERR_INVALID;
}

enum err body_fields_take(struct api_call *call, struct slice piece)
{
    if (check(call, piece))
        return ERR_INVALID;
    struct body_fields *fields = call->state;
    buf_add(&fields->text, piece);
    return OK;
}

static enum err check_length(const struct body_fields *fields, struct failure *why)
{
    if (fields->text.len <= BODY_FIELDS_BESIDE_MAX)
        return OK;
    return explain(why, ERR_TOO_LARGE,
                   "The body is too large (max 1 MiB without its output)");
}

enum err body_fields_take_long(struct api_call *call, struct slice piece)
{
    if (check(call, piece))
        return ERR_INVALID;
    struct body_fields *fields = call->state;
    follow(fields, piece);
    if (!check_length(fields, &call->why))
        return OK;
    body_fields_free(take_out(call));
    return ERR_TOO_LARGE;
}

void body_fields_take_any(struct api_call *call, struct slice piece)
{
    bool is_first = !call->state;
    struct body_fields *fields = fields_of(call);
    if (is_first) {
        fields->aside_depth = ANY_ASIDE_DEPTH;
        fields->aside_room = BODY_FIELDS_ASIDE_MAX;
    }
    if (fields->lost.code)
        return;
    if (scan_feed(&fields->scan, piece))
        scan_explain(&fields->scan, &fields->lost);
    else
        follow(fields, piece);
    if (fields->lost.code || check_length(fields, &fields->lost))
        keep_nothing(fields);
}

void body_fields_ignore(struct api_call *call, const char *why)
{
    struct body_fields *fields = fields_of(call);
    keep_nothing(fields);
    explain(&fields->lost, ERR_INVALID, "%s", why);
}

size_t body_fields_size(const struct api_call *call)
{
    const struct body_fields *fields = call->state;
    if (!fields || fields->lost.code)
        return 0;
    return fields->text.capacity + fields->rest.capacity + fields->aside_memory +
           fields->aside_count * sizeof(struct aside);
}

void body_fields_drop(struct api_call *call)
{
    if (call->state)
        body_fields_free(take_out(call));
}

enum err body_fields_end(struct api_call *call, struct body_fields **fields,
                         struct slice *object)
{
    struct body_fields *taken = take_out(call);
    const char *wrong = NULL;

    if (!taken)
        return explain(&call->why, ERR_INVALID, "Request body is empty");
    if (taken->lost.code) {
        call->why = taken->lost;
        body_fields_free(taken);
        return call->why.code;
    }
    if (scan_finish(&taken->scan))
        wrong = "Invalid JSON: the body ends too early";
    else if (scan_type(buf_slice(&taken->text)) != SCAN_OBJECT)
        wrong = "Validation error: the body must be a JSON object";
    if (wrong) {
        body_fields_free(taken);
        return explain(&call->why, ERR_INVALID, "%s", wrong);
    }
    *fields = taken;
    *object = buf_slice(&taken->text);
    return OK;
}
