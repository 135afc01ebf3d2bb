/* log.c - formats each log line as logfmt or JSON and writes it at once. */
#include "base/log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/terminal.h"
#include "base/text.h"

enum { FIELD_BUFFERS = 8, SLICE_TEXT_MAX = 100 };

enum log_level log_lowest_level = LOG_INFO;
static enum log_format chosen_format = LOG_AUTO;

static const char *const level_names[] = {
    [LOG_DEBUG] = "debug", [LOG_INFO] = "info",  [LOG_WARN] = "warn",
    [LOG_ERROR] = "error", [LOG_AUDIT] = "info",
};

void log_configure(enum log_level level, enum log_format format)
{
    log_lowest_level = level;
    chosen_format = format;
}

static bool is_plain(struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        if (c <= ' ' || c >= 0x7F || c == '"' || c == '=' || c == '\\')
            return false;
    }
    return text.len > 0;
}

/* Appends the JSON text, escaping the characters that a terminal would obey. */
static void add_visible(struct buf *line, struct slice json)
{
    size_t len;
    for (; json.len; json = slice_from(json, len)) {
        uint16_t character = terminal_interprets(json, &len);
        if (character) {
            char escape[8];
            snprintf(escape, sizeof(escape), "\\u%04x", character);
            buf_add_text(line, escape);
        } else {
            len = 1;
            buf_add_char(line, *json.ptr);
        }
    }
}

/* Appends any bytes as a JSON string, so that a line is always one line of UTF-8. */
static void add_quoted(struct buf *line, struct slice text)
{
    struct buf plain = { 0 }, json = { 0 };
    bool is_utf8 = text_is_utf8(text);
    for (size_t i = 0; i < text.len; i++)
        buf_add_char(&plain, !is_utf8 && text.ptr[i] & 0x80 ? '?' : text.ptr[i]);
    buf_add_json(&json, buf_slice(&plain));
    add_visible(line, buf_slice(&json));
    buf_finish(&json);
    buf_finish(&plain);
}

static void add_field(struct buf *line, bool json, const char *name, const char *text)
{
    struct slice value = slice_of(text ? text : "");
    buf_add_text(line, json ? (line->len ? "," : "{") : (line->len ? " " : ""));
    if (json) {
        buf_add_json(line, slice_of(name));
        buf_add_char(line, ':');
        add_quoted(line, value);
        return;
    }
    buf_add_text(line, name);
    buf_add_char(line, '=');
    if (is_plain(value))
        buf_add(line, value);
    else
        add_quoted(line, value);
}

/* Uses one write, so that the lines of two threads do not mix. Ignores a failure of
 * stderr. */
static void write_line(const struct buf *line)
{
    size_t written = 0;
    while (written < line->len) {
        ssize_t count = write(STDERR_FILENO, line->ptr + written, line->len - written);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return;
        written += (size_t)count;
    }
}

static bool is_json(void)
{
    return chosen_format == LOG_JSON ||
           (chosen_format == LOG_AUTO && !isatty(STDERR_FILENO));
}

/* Begins a log line. For an audit, event is the action. */
static void begin_line(struct buf *line, bool json, enum log_level level, const char *event)
{
    struct timespec now;
    char time_text[TIME_TEXT_LEN + 1];
    clock_gettime(CLOCK_REALTIME, &now);
    text_from_time((int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000, time_text);

    add_field(line, json, "time", time_text);
    add_field(line, json, "level", level_names[level]);
    add_field(line, json, "event", level == LOG_AUDIT ? "audit" : event);
    if (level == LOG_AUDIT)
        add_field(line, json, "action", event);
}

static void end_line(struct buf *line, bool json, va_list fields)
{
    for (const char *name; (name = va_arg(fields, const char *));)
        add_field(line, json, name, va_arg(fields, const char *));
    buf_add_text(line, json ? "}\n" : "\n");
    write_line(line);
    buf_finish(line);
}

static void log_fields(enum log_level level, const char *event, va_list fields)
{
    if (level < log_lowest_level)
        return;
    struct buf line = { 0 };
    bool json = is_json();
    begin_line(&line, json, level, event);
    end_line(&line, json, fields);
}

void log_write_decision(const char *event, const char *environment, const char *run,
                        const char *reason, ...)
{
    struct buf line = { 0 };
    bool json = is_json();
    va_list fields;
    va_start(fields, reason);
    begin_line(&line, json, LOG_DEBUG, event);
    if (environment)
        add_field(&line, json, "environment", environment);
    if (run)
        add_field(&line, json, "run", run);
    add_field(&line, json, "reason", reason);
    end_line(&line, json, fields);
    va_end(fields);
}

void log_write_debug(const char *event, ...)
{
    va_list fields;
    va_start(fields, event);
    log_fields(LOG_DEBUG, event, fields);
    va_end(fields);
}

void log_info(const char *event, ...)
{
    va_list fields;
    va_start(fields, event);
    log_fields(LOG_INFO, event, fields);
    va_end(fields);
}

void log_warn(const char *event, ...)
{
    va_list fields;
    va_start(fields, event);
    log_fields(LOG_WARN, event, fields);
    va_end(fields);
}

void log_error(const char *event, ...)
{
    va_list fields;
    va_start(fields, event);
    log_fields(LOG_ERROR, event, fields);
    va_end(fields);
}

void log_audit(const char *action, ...)
{
    va_list fields;
    va_start(fields, action);
    log_fields(LOG_AUDIT, action, fields);
    va_end(fields);
}

const char *log_number(int64_t number)
{
    static _Thread_local char buffers[FIELD_BUFFERS][24];
    static _Thread_local unsigned turn;
    char *text = buffers[turn++ % FIELD_BUFFERS];
    snprintf(text, sizeof(buffers[0]), "%" PRId64, number);
    return text;
}

const char *log_slice(struct slice text)
{
    static _Thread_local char buffers[FIELD_BUFFERS][SLICE_TEXT_MAX + 1];
    static _Thread_local unsigned turn;
    char *copy = buffers[turn++ % FIELD_BUFFERS];
    size_t len = text.len < SLICE_TEXT_MAX ? text.len : SLICE_TEXT_MAX;
    while (len && len < text.len && (text.ptr[len] & 0xC0) == 0x80)
        len--; /* not within a character */
    for (size_t i = 0; i < len; i++)
        copy[i] = text.ptr[i] ? text.ptr[i] : '?';
    copy[len] = '\0';
    return copy;
}
