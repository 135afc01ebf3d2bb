/* error.h - error codes, and the reason for a failure as text.
 *
 * A function that can fail returns enum err and delivers its results through its last
 * arguments, which stay untouched on failure. Where a person will read the reason
 * (configuration, request validation, opening a store), it also takes a struct failure. */
#pragma once

#include <stdarg.h>
#include <stdio.h>

enum err {
    OK = 0,
#define ERROR(code, http, text) code,
#include "base/errors.def"
#undef ERROR
};

static const struct {
    int http_status;
    const char *text;
} errors[] = {
    [OK] = { 200, "ok" },
#define ERROR(code, http, text) [code] = { http, text },
#include "base/errors.def"
#undef ERROR
};

struct failure {
    enum err code;
    char text[320];
};

/* Stores the reason and returns the code, so that a check reads as one line:
 *
 *     return explain(why, ERR_INVALID, "ttl: \"%.*s\" is not a duration", ...); */
__attribute__((format(printf, 3, 4))) static inline enum err
explain(struct failure *why, enum err code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(why->text, sizeof(why->text), format, args);
    va_end(args);
    return why->code = code;
}
