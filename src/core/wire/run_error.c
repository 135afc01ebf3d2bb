/* run_error.c - reads a stored error, and writes the members that clients understand. */
#include "core/wire/run_error.h"

#include "base/json/scan.h"
#include "base/rope.h"

/* The raw members of a stored error, strings with their quotes; absent if missing. */
struct error_texts {
    struct slice type, name, message, stack, raw, code;
};

static struct error_texts read_error(struct slice error_json)
{
    struct error_texts texts = { 0 };
    const struct {
        const char *name;
        struct slice *place;
    } wanted[] = {
        { "type", &texts.type },       { "name", &texts.name },
        { "message", &texts.message }, { "stackTrace", &texts.stack },
        { "raw", &texts.raw },         { "code", &texts.code },
    };
    if (scan_type(error_json) != SCAN_OBJECT)
        return texts;
    struct scan_members members = scan_members(error_json);
    struct slice key, value;
    while (scan_next_member(&members, &key, &value))
        for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
            if (scan_type(value) == SCAN_STRING &&
                scan_key_is(key, slice_of(wanted[i].name)))
                *wanted[i].place = value;
    return texts;
}

static void add_raw(const char *head, struct bytes *error, struct slice raw,
                    struct buf *out)
{
    if (!raw.len)
        return;
    buf_add_text(out, head);
    rope_add(out, error, raw);
}

/* Returns true for codes that do not show what happened: the worker is gone, its completion
 * was wrong, or its process ended (by which exit code or signal?). The error's message
 * explains it then. */
static bool needs_words(struct slice code)
{
    return slice_is(code, "TASK_RUN_CANCELLED") || slice_is(code, "TASK_OUTPUT_ERROR") ||
           slice_is(code, "TASK_EXECUTION_FAILED") ||
           slice_is(code, "TASK_PROCESS_EXITED_WITH_NON_ZERO_CODE") ||
           slice_starts(code, "TASK_RUN_STALLED_");
}

static void render_code(struct bytes *error, const struct error_texts *texts,
                        struct buf *out)
{
    struct slice code = scan_unquoted(texts->code), words = scan_unquoted(texts->message);
    buf_add(out, SLICE("{\"message\":\"trigger.dev internal error ("));
    buf_add(out, code);
    buf_add_char(out, ')');
    if (needs_words(code) && words.len) {
        buf_add(out, SLICE(": "));
        rope_add(out, error, words);
    }
    buf_add_char(out, '"');
    add_raw(",\"stackTrace\":", error, texts->stack, out); /* for a crash: standard error */
    buf_add_char(out, '}');
}

void run_error_render(struct bytes *error, struct buf *out)
{
    struct error_texts texts = read_error(bytes_slice(error));
    if (slice_is(texts.type, "\"INTERNAL_ERROR\"") && texts.code.len >= 2) {
        render_code(error, &texts, out);
        return;
    }
    bool is_built_in = slice_is(texts.type, "\"BUILT_IN_ERROR\"");
    struct slice message = texts.raw.len && !is_built_in ? texts.raw : texts.message;
    add_raw("{\"message\":", error, message.len ? message : SLICE("\"\""), out);
    if (is_built_in) {
        add_raw(",\"name\":", error, texts.name, out);
        add_raw(",\"stackTrace\":", error, texts.stack, out);
    }
    buf_add_char(out, '}');
}
