/* cron.h - five-field cron expressions: when next, in a time zone, and in words.
 *
 *     minute    0–59
 *     hour      0–23
 *     day       1–31, L
 *     month     1–12, JAN–DEC
 *     weekday   0–7, SUN–SAT, 5L, 5#2
 *
 * Every field is a list of *, ?, numbers, ranges and steps. When both day fields are
 * restricted, a day that fits either will do.
 *
 * A time of day is one on the wall. What the clock jumps over runs as much later as it
 * jumps (02:30 at 03:30), what it shows twice runs the first time; but with every hour in
 * the second field, runs follow the time that passes: nothing is moved, both are kept. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "api/schedules/zone.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/slice.h"

enum { CRON_TEXT_MAX = 256 };

/* Bit sets: bit n for the number n. */
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

/* ERR_INVALID with the whole sentence: "Invalid cron expression: …". Expressions that
 * would never run are refused too. */
enum err cron_read(struct slice text, struct cron *cron, struct failure *why);

/* The same for an expression that a user gives now: a step that is larger than the range of its
 * field, as in 61 minutes, is refused too. Schedules that are stored may have one. */
enum err cron_read_new(struct slice text, struct cron *cron, struct failure *why);

/* The first time after the given one; both Unix ms. 0: none in the next fifty years. */
int64_t cron_next(const struct cron *cron, const struct zone *zone, int64_t after_ms);

/* "At 09:00 AM, Monday through Friday". */
void cron_describe(const struct cron *cron, struct buf *out);
