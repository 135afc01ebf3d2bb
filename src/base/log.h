/* log.h - one line per event on stderr, with fields.
 *
 *     log_info("listening", "address", "127.0.0.1", "port", "3030", NULL);
 *
 * Fields are name and text in turn, ended by NULL. Secrets are never fields: what is logged
 * is chosen by the caller name by name (an allow-list); URLs are logged without queries. */
#pragma once

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

__attribute__((sentinel)) void log_debug(const char *event, ...);
__attribute__((sentinel)) void log_info(const char *event, ...);
__attribute__((sentinel)) void log_warn(const char *event, ...);
__attribute__((sentinel)) void log_error(const char *event, ...);

/* Who has done what that is asked about later: written whatever the level. */
__attribute__((sentinel)) void log_audit(const char *action, ...);

/* A number as a field's text; one of eight buffers in turn. */
const char *log_number(int64_t number);

/* A slice as a field's text, cut at 100 bytes; one of eight buffers in turn. */
const char *log_slice(struct slice text);
