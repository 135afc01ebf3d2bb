/* log.h - logging: one line per event on stderr, with fields.
 *
 *     log_info("listening", "address", "127.0.0.1", "port", "3030", NULL);
 *
 * Fields are pairs of a name and a text, ended by NULL. Secrets are never fields: the
 * caller chooses by name what is logged (an allow-list), and URLs are logged without their
 * query.
 *
 * Functions for the debug level are macros: at any other level they are one branch, and
 * their arguments are not evaluated. */
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
}; /* auto: logfmt on a terminal, otherwise JSON */

/* Call once at start. Default: LOG_INFO, LOG_AUTO. */
void log_configure(enum log_level level, enum log_format format);

__attribute__((sentinel)) void log_info(const char *event, ...);
__attribute__((sentinel)) void log_warn(const char *event, ...);
__attribute__((sentinel)) void log_error(const char *event, ...);

/* Logs who did what, for later inquiries. Written at every level. */
__attribute__((sentinel)) void log_audit(const char *action, ...);

/* Belongs to log.c; use log_has_debug. */
extern enum log_level log_lowest_level;

static inline bool log_has_debug(void)
{
    return __builtin_expect(log_lowest_level == LOG_DEBUG, 0);
}

#define log_debug(...) (log_has_debug() ? log_write_debug(__VA_ARGS__) : (void)0)

/* Logs a decision and its reason at the debug level, to explain the state of a run.
 *
 *     log_decision("lease over", env->id, run->id, "it was given back", NULL);
 *
 * Arguments: the event; the ids of the environment and of the run, or NULL; the reason in
 * words; further fields, ended by NULL. */
#define log_decision(...) (log_has_debug() ? log_write_decision(__VA_ARGS__) : (void)0)

/* Called by the two macros. */
__attribute__((sentinel)) void log_write_debug(const char *event, ...);
__attribute__((sentinel)) void log_write_decision(const char *event,
                                                  const char *environment, const char *run,
                                                  const char *reason, ...);

/* Formats a number as a field's text, in one of eight buffers, used in turn. */
const char *log_number(int64_t number);

/* Copies a slice, cut at 100 bytes, as a field's text into one of eight buffers, used in
 * turn. */
const char *log_slice(struct slice text);
