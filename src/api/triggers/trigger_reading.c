/* trigger_reading.c - reads texts, numbers and flags of options; explains errors. */
#include "api/triggers/trigger_reading.h"

#include <math.h>

#include "base/json/scan.h"

enum { DIGITS_MAX = 64 };

enum err reading_mistake(struct trigger_reading *r, const char *text)
{
    return explain(r->why, ERR_INVALID, "Validation error: %s at \"options.%s\"", text,
                   r->name);
}

/* ---- ignored options ---- */

static const char *path_of(const struct trigger_reading *r)
{
    return r->source->is_item ? "items[].options." : "options.";
}

void reading_report(struct trigger_reading *r, struct slice key)
{
    ignored_add_member(r->source->ignored, path_of(r), key);
}

void reading_report_others(struct trigger_reading *r, const char *where,
                           struct slice object, const char *const *known)
{
    char path[64];
    snprintf(path, sizeof(path), "%s%s", path_of(r), where);
    ignored_add_others(r->source->ignored, path, object, known);
}

/* ---- texts ---- */

enum err reading_text(struct trigger_reading *r, struct slice value, size_t max,
                      struct slice *text)
{
    buf_clear(&r->text);
    if (!scan_string(value, &r->text))
        return reading_mistake(r, "Expected string");
    if (text_utf16_length(buf_slice(&r->text)) > max)
        return explain(r->why, ERR_INVALID,
                       "Validation error: String must contain at most %zu character(s) at "
                       "\"options.%s\"",
                       max, r->name);
    *text = buf_slice(&r->text);
    return OK;
}

enum err reading_number(struct trigger_reading *r, struct slice value, double *number)
{
    if (scan_type(value) != SCAN_NUMBER)
        return reading_mistake(r, "Expected number");
    if (value.len >= DIGITS_MAX)
        return reading_mistake(r, "Number has too many digits");
    if (!scan_number(value, number))
        return reading_mistake(r, "Expected number");
    return isfinite(*number) ? OK : reading_mistake(r, "Number is too large");
}

enum err reading_integer(struct trigger_reading *r, struct slice value, double *number)
{
    double read;
    enum err err = reading_number(r, value, &read);
    if (err)
        return err;
    if (read != trunc(read))
        return reading_mistake(r, "Expected integer, received float");
    *number = read;
    return OK;
}

enum err reading_flag(struct trigger_reading *r, struct slice value, bool *flag)
{
    enum scan_type type = scan_type(value);
    if (type != SCAN_TRUE && type != SCAN_FALSE)
        return reading_mistake(r, "Expected boolean");
    *flag = type == SCAN_TRUE;
    return OK;
}
