/* build_log.c - keeps the last MiB of a build's log, in whole lines. */
#include "api/deployments/build_log.h"

#include <string.h>

enum { SLACK = BUILD_LOG_MAX / 4 };

struct slice build_log_text(const struct build_log *log)
{
    struct slice text = buf_slice(&log->text);
    if (text.len <= BUILD_LOG_MAX)
        return text;
    text = slice_from(text, text.len - BUILD_LOG_MAX);
    const char *line = memchr(text.ptr, '\n', text.len);
    return line ? slice_from(text, (size_t)(line - text.ptr) + 1) : text;
}

static void cut(struct build_log *log)
{
    buf_drop(&log->text, log->text.len - build_log_text(log).len);
}

void build_log_add(struct build_log *log, const struct secret_filter *filter,
                   struct slice piece)
{
    secret_scan_add(&log->scan, filter, piece, &log->text);
    if (log->text.len > BUILD_LOG_MAX + SLACK) /* not with each piece */
        cut(log);
}

void build_log_end(struct build_log *log)
{
    secret_scan_end(&log->scan, &log->text);
    cut(log);
}

void build_log_finish(struct build_log *log)
{
    buf_finish(&log->text);
}
