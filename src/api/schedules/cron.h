/* cron.h - five-field cron expressions: parsed, described, and their next time.
 *
 *      minute    0–59
 *      hour      0–23
 *      day       1–31, L
 *      month     1–12, JAN–DEC
 *      weekday   0–7, SUN–SAT, 5L, 5#2
 *
 * Every field is a list of *, ?, numbers, ranges and steps. If both day fields are
 * restricted, a day that matches either is enough.
 *
 * A time of day is local time. A time that the clock skips is moved later by the length of
 * the jump (02:30 to 03:30), and a time that the clock shows twice counts only once, the
 * first time. If the hour field contains every hour, runs follow elapsed time instead:
 * skipped times are dropped, and repeated ones count twice. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "api/schedules/zone.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/slice.h"

enum { CRON_TEXT_MAX = 256 };

/* An expression as bit sets: bit n stands for the number n. */
struct cron {
    uint64_t minutes;
    uint32_t hours;
    uint32_t days;
    uint16_t months;
    uint8_t weekdays;        /* 0 is Sunday */
    uint8_t last_weekdays;   /* 5L: the last Friday of the month */
    uint8_t nth_weekdays[5]; /* 5#2: the second Friday, in [1] */
    bool last_day;           /* L */
    bool every_day, every_weekday;
    const char *overstepped; /* name of the first field with a step larger than its range */
};

/* Reads an expression. Returns ERR_INVALID with a complete message: "Invalid cron
 * expression: …". Expressions that would never run are invalid, too. */
enum err cron_read(struct slice text, struct cron *cron, struct failure *why);

/* The same for an expression that a user enters now: a step larger than the range of its
 * field, as in 61 minutes, is also invalid. Stored schedules may have one. */
enum err cron_read_new(struct slice text, struct cron *cron, struct failure *why);

/* Returns the first time after after_ms; both are Unix ms. 0: none in the next fifty
 * years. */
int64_t cron_next(const struct cron *cron, const struct zone *zone, int64_t after_ms);

/* Appends a description: "At 09:00 AM, Monday through Friday". */
void cron_describe(const struct cron *cron, struct buf *out);
