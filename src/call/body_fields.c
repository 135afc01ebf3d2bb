/* body_fields.c - pieces through the validator into one buffer; long strings beside it.
 *
 *   …"output":"abc…   more than LONG ─► text: …"output":"\1<index>", aside[index]: abc…
 *
 * The mark begins with a control character, which no valid JSON has inside a string. */
#include "call/body_fields.h"

#include "base/mem.h"
#include "json/scan.h"

enum { LONG = 32 * 1024, ASIDE_DEPTH = 2, MARK = 1 };

struct intake {
    struct scan scan;
    struct buf text;
    struct buf *aside; /* decoded */
    size_t aside_count;

    /* Where reading is, for intake_take_long. */
    size_t depth;
    size_t string_at; /* of its first character, in text */
    bool in_string, after_backslash;
    bool setting_aside;
    struct scan_text escapes;
};

void intake_free(struct intake *intake)
{
    if (!intake)
        return;
    for (size_t i = 0; i < intake->aside_count; i++)
        buf_finish(&intake->aside[i]);
    free(intake->aside);
    buf_finish(&intake->text);
    free(intake);
}

/* ---- decoding what is set aside ---- */

static void decode(struct intake *intake, struct slice raw)
{
    scan_text_feed(&intake->escapes, raw, &intake->aside[intake->aside_count - 1]);
}

/* The string that is being read turns out to be long. */
static void set_aside(struct intake *intake)
{
    size_t index = intake->aside_count++;
    intake->aside = mem_resize(intake->aside, intake->aside_count * sizeof(struct buf));
    intake->aside[index] = (struct buf){ 0 };
    intake->setting_aside = true;
    decode(intake, slice_from(buf_slice(&intake->text), intake->string_at));
    intake->text.len = intake->string_at;
    buf_print(&intake->text, "%c%zu", MARK, index);
}

bool intake_string(struct intake *intake, struct slice value, struct buf *out)
{
    size_t index = 0;
    value = slice_trim(value);
    if (scan_type(value) != SCAN_STRING || value.len < 3 || value.ptr[1] != MARK)
        return scan_string(value, out);
    for (size_t i = 2; i + 1 < value.len; i++)
        index = index * 10 + (size_t)(value.ptr[i] - '0');
    if (!out->len) { /* the usual case: nothing is copied */
        buf_finish(out);
        *out = intake->aside[index];
        intake->aside[index] = (struct buf){ 0 };
    } else {
        buf_add(out, buf_slice(&intake->aside[index]));
    }
    return true;
}

/* ---- following strings and depth ---- */

static size_t inside_length(struct intake *intake, struct slice rest)
{
    for (size_t i = 0; i < rest.len; i++) {
        if (intake->after_backslash)
            intake->after_backslash = false;
        else if (rest.ptr[i] == '\\')
            intake->after_backslash = true;
        else if (rest.ptr[i] == '"')
            return i;
    }
    return rest.len;
}

/* Up to the quote that begins a string. */
static size_t outside_length(struct intake *intake, struct slice rest)
{
    for (size_t i = 0; i < rest.len; i++) {
        char c = rest.ptr[i];
        if (c == '"')
            return i;
        intake->depth += c == '{' || c == '[';
        intake->depth -= c == '}' || c == ']';
    }
    return rest.len;
}

static void add_inside(struct intake *intake, struct slice part)
{
    if (intake->setting_aside) {
        decode(intake, part);
        return;
    }
    buf_add(&intake->text, part);
    if (intake->depth <= ASIDE_DEPTH && intake->text.len - intake->string_at > LONG)
        set_aside(intake);
}

static void follow(struct intake *intake, struct slice rest)
{
    while (rest.len) {
        size_t len =
            intake->in_string ? inside_length(intake, rest) : outside_length(intake, rest);
        struct slice part = { rest.ptr, len };
        if (intake->in_string)
            add_inside(intake, part);
        else
            buf_add(&intake->text, part);
        if (len == rest.len)
            return;
        buf_add_char(&intake->text, '"');
        intake->in_string = !intake->in_string;
        intake->setting_aside = false;
        intake->string_at = intake->text.len;
        rest = slice_from(rest, len + 1);
    }
}

/* ---- the body ---- */

static struct intake *take_out(struct api_call *call)
{
    struct intake *intake = call->state;
    call->state = NULL;
    call->on_gone = NULL;
    return intake;
}

/* The peer left in the middle of its body. */
static void on_gone(struct api_call *call)
{
    intake_free(take_out(call));
    api_reply_empty(call, 499);
}

static enum err check(struct api_call *call, struct slice piece)
{
    struct intake *intake = call->state;
    if (!intake) {
        intake = call->state = mem_new(struct intake);
        call->on_gone = on_gone;
        scan_init(&intake->scan);
    }
    if (!scan_feed(&intake->scan, piece))
        return OK;
    scan_explain(&intake->scan, &call->why);
    intake_free(take_out(call));
    return ERR_INVALID;
}

enum err intake_take(struct api_call *call, struct slice piece)
{
    if (check(call, piece))
        return ERR_INVALID;
    struct intake *intake = call->state;
    buf_add(&intake->text, piece);
    return OK;
}

enum err intake_take_long(struct api_call *call, struct slice piece)
{
    if (check(call, piece))
        return ERR_INVALID;
    struct intake *intake = call->state;
    follow(intake, piece);
    if (intake->text.len <= INTAKE_BESIDE_MAX)
        return OK;
    intake_free(take_out(call));
    return explain(&call->why, ERR_TOO_LARGE,
                   "The body is too large: at most 1 MiB beside its output");
}

enum err intake_end(struct api_call *call, struct intake **intake, struct slice *object)
{
    struct intake *taken = take_out(call);
    const char *wrong = NULL;

    if (!taken)
        return explain(&call->why, ERR_INVALID, "Request body is empty");
    if (scan_finish(&taken->scan))
        wrong = "Invalid JSON: the body ends too early";
    else if (scan_type(buf_slice(&taken->text)) != SCAN_OBJECT)
        wrong = "Validation error: the body must be a JSON object";
    if (wrong) {
        intake_free(taken);
        return explain(&call->why, ERR_INVALID, "%s", wrong);
    }
    *intake = taken;
    *object = buf_slice(&taken->text);
    return OK;
}

enum err intake_drop(struct api_call *call, struct slice piece)
{
    (void)call;
    (void)piece;
    return OK;
}
