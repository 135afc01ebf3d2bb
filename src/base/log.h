/* log.h - one line per event on stderr, with fields.
 *
 *     log_info("listening", "address", "127.0.0.1", "port", "3030", NULL);
 *
 * Fields are name and text in turn, ended by NULL. Secrets are never fields: what is logged
 * is chosen by the caller name by name (an allow-list); URLs are logged without queries.
 *
 * What is for debug alone is a macro: at any other level it is one branch, and nothing that
 * stands between its brackets is evaluated. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/slice.h"

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR, LOG_AUDIT };
enum log_format {
    LOG_AUTO,
    LOG_LOGFMT,
    LOG_JSON
}; /* auto: logfmt on a terminal, else JSON */

/* Call once at start. Default: info, auto, to standard error. */
void log_configure(enum log_level level, enum log_format format);

__attribute__((sentinel)) void log_info(const char *event, ...);
__attribute__((sentinel)) void log_warn(const char *event, ...);
__attribute__((sentinel)) void log_error(const char *event, ...);

/* Who has done what that is asked about later: written whatever the level. */
__attribute__((sentinel)) void log_audit(const char *action, ...);

/* log.c's; read it with log_has_debug. */
extern enum log_level log_lowest_level;

static inline bool log_has_debug(void)
{
    return __builtin_expect(log_lowest_level == LOG_DEBUG, 0);
}

#define log_debug(...) (log_has_debug() ? log_write_debug(__VA_ARGS__) : (void)0)

/* What was decided, and why, at debug: for who asks at night where a run is.
 *
 *     log_decision("lease over", env->id, run->id, "it was given back", NULL);
 *
 * event, then the ids of the environment and of the run, NULL where there is none; the reason
 * in words; then more fields, ended by NULL. */
#define log_decision(...) (log_has_debug() ? log_write_decision(__VA_ARGS__) : (void)0)

/* Behind the two macros. */
__attribute__((sentinel)) void log_write_debug(const char *event, ...);
__attribute__((sentinel)) void log_write_decision(const char *event,
                                                  const char *environment, const char *run,
                                                  const char *reason, ...);

/* A number as a field's text; one of eight buffers in turn. */
const char *log_number(int64_t number);

/* A slice as a field's text, cut at 100 bytes; one of eight buffers in turn. */
const char *log_slice(struct slice text);
