/* text_time.c - reads and writes durations and points in time as text. */
#include "base/text.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>

enum {
    SECOND_MS = 1000,
    MINUTE_MS = 60 * SECOND_MS,
    HOUR_MS = 60 * MINUTE_MS,
    DAY_MS = 24 * HOUR_MS,
    WEEK_MS = 7 * DAY_MS,
    DURATION_TEXT_MAX = 100,
};

static const int64_t year_9999_end_ms = INT64_C(253402300799999);

/* Units of a duration, in the order that text_from_seconds writes. "hr" means "h". */
static const struct unit {
    char letter;
    int64_t ms;
} units[] = {
    { 'w', WEEK_MS },   { 'd', DAY_MS },    { 'h', HOUR_MS },
    { 'm', MINUTE_MS }, { 's', SECOND_MS },
};

enum { UNIT_COUNT = sizeof(units) / sizeof(units[0]) };

static bool take_char(struct slice *text, char c)
{
    if (!text->len || text->ptr[0] != c)
        return false;
    *text = slice_from(*text, 1);
    return true;
}

/* Takes the digits at the front; at least one. */
static bool take_digits(struct slice *text, struct slice *digits)
{
    size_t len = 0;
    while (len < text->len && text->ptr[len] >= '0' && text->ptr[len] <= '9')
        len++;
    *digits = (struct slice){ text->ptr, len };
    if (len)
        *text = slice_from(*text, len);
    return len > 0;
}

static bool take_unit(struct slice *text, size_t *unit)
{
    for (size_t i = 0; i < UNIT_COUNT; i++)
        if (take_char(text, units[i].letter)) {
            if (units[i].letter == 'h')
                take_char(text, 'r');
            *unit = i;
            return true;
        }
    return false;
}

enum err text_to_duration_ms(struct slice text, int64_t *ms)
{
    int64_t total = 0;
    bool seen[UNIT_COUNT] = { false };
    if (!text.len || text.len > DURATION_TEXT_MAX)
        return ERR_INVALID;
    while (text.len) {
        struct slice digits;
        size_t unit;
        int64_t count, part;
        if (!take_digits(&text, &digits) || !take_unit(&text, &unit))
            return ERR_INVALID;
        if (seen[unit] || text_to_i64(digits, &count) ||
            __builtin_mul_overflow(count, units[unit].ms, &part) || part > text_time_max_ms)
            return ERR_INVALID;
        seen[unit] = true;
        total += part;
    }
    if (total > text_time_max_ms)
        return ERR_INVALID;
    *ms = total;
    return OK;
}

void text_from_seconds(uint64_t seconds, char out[48])
{
    size_t len = 0;
    for (size_t i = 0; i < UNIT_COUNT; i++) {
        uint64_t unit = (uint64_t)units[i].ms / SECOND_MS;
        uint64_t count = seconds / unit;
        seconds %= unit;
        if (count || (!len && unit == 1))
            len += (size_t)snprintf(out + len, 48 - len, "%llu%c",
                                    (unsigned long long)count, units[i].letter);
    }
}

/* Takes a number of exactly count digits. */
static bool take_number(struct slice *text, size_t count, int *number)
{
    if (text->len < count)
        return false;
    int value = 0;
    for (size_t i = 0; i < count; i++) {
        if (text->ptr[i] < '0' || text->ptr[i] > '9')
            return false;
        value = value * 10 + (text->ptr[i] - '0');
    }
    *number = value;
    *text = slice_from(*text, count);
    return true;
}

/* Returns the days since 1970-01-01 (proleptic Gregorian); here the year begins in
 * March. */
static int64_t days_from_civil(int64_t year, int month, int day)
{
    year -= month <= 2;
    int64_t era = (year >= 0 ? year : year - 399) / 400;
    int64_t year_of_era = year - era * 400;
    int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    int64_t day_of_era =
        year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    return era * 146097 + day_of_era - 719468;
}

/* Takes a year: four digits, or a sign and six. -000000 does not exist. */
static bool take_year(struct slice *text, int *year)
{
    bool negative = take_char(text, '-');
    if (!negative && !take_char(text, '+'))
        return take_number(text, 4, year);
    if (!take_number(text, 6, year) || (negative && *year == 0))
        return false;
    *year = negative ? -*year : *year;
    return true;
}

static bool take_date(struct slice *text, int64_t *ms)
{
    int year, month = 1, day = 1;
    if (!take_year(text, &year))
        return false;
    if (take_char(text, '-')) {
        if (!take_number(text, 2, &month))
            return false;
        if (take_char(text, '-') && !take_number(text, 2, &day))
            return false;
    }
    if (month < 1 || month > 12 || day < 1 || day > 31)
        return false;
    *ms = days_from_civil(year, month, day) * DAY_MS;
    return true;
}

/* Takes a fraction of a second: .5 is 500 ms. Digits after the third are cut off. */
static bool take_fraction(struct slice *text, int *ms)
{
    struct slice digits;
    *ms = 0;
    if (!take_char(text, '.'))
        return true;
    if (!take_digits(text, &digits))
        return false;
    for (size_t i = 0; i < 3; i++)
        *ms = *ms * 10 + (i < digits.len ? digits.ptr[i] - '0' : 0);
    return true;
}

static bool take_clock(struct slice *text, int64_t *ms)
{
    int hour, minute, second = 0, fraction = 0;
    if (!take_number(text, 2, &hour) || !take_char(text, ':') ||
        !take_number(text, 2, &minute))
        return false;
    if (take_char(text, ':') &&
        (!take_number(text, 2, &second) || !take_fraction(text, &fraction)))
        return false;
    if (hour > 24 || minute > 59 || second > 59)
        return false;
    if (hour == 24 && (minute || second || fraction))
        return false;
    *ms += hour * (int64_t)HOUR_MS + minute * MINUTE_MS + second * SECOND_MS + fraction;
    return true;
}

static bool take_zone(struct slice *text, int64_t *ms)
{
    if (!text->len || take_char(text, 'Z') || take_char(text, 'z'))
        return true;
    bool west = take_char(text, '-');
    if (!west && !take_char(text, '+'))
        return false;
    int hour, minute;
    if (!take_number(text, 2, &hour))
        return false;
    take_char(text, ':');
    if (!take_number(text, 2, &minute) || hour > 23 || minute > 59)
        return false;
    int64_t offset = hour * (int64_t)HOUR_MS + minute * MINUTE_MS;
    *ms += west ? offset : -offset;
    return true;
}

enum err text_to_time(struct slice text, int64_t *unix_ms)
{
    int64_t ms;
    if (!take_date(&text, &ms))
        return ERR_INVALID;
    if (take_char(&text, 'T') || take_char(&text, 't') || take_char(&text, ' '))
        if (!take_clock(&text, &ms) || !take_zone(&text, &ms))
            return ERR_INVALID;
    if (text.len || ms < -text_time_max_ms || ms > text_time_max_ms)
        return ERR_INVALID;
    *unix_ms = ms;
    return OK;
}

enum err text_to_moment(struct slice text, int64_t now_ms, int64_t *unix_ms)
{
    int64_t moment, wait;
    if (text_to_time(text, &moment)) {
        if (text_to_duration_ms(text, &wait))
            return ERR_INVALID;
        moment = now_ms + wait;
    }
    if (moment > year_9999_end_ms)
        return ERR_INVALID;
    *unix_ms = moment;
    return OK;
}

enum err text_number_to_time(double number, int64_t *unix_ms)
{
    if (!(fabs(number) <= (double)text_time_max_ms))
        return ERR_INVALID;
    *unix_ms = (int64_t)number;
    return OK;
}

static void put_number(char *out, size_t width, int64_t number)
{
    for (; width; number /= 10)
        out[--width] = (char)('0' + number % 10);
}

void text_from_time(int64_t unix_ms, char out[TIME_TEXT_LEN + 1])
{
    const int64_t first = days_from_civil(0, 1, 1) * DAY_MS;
    unix_ms = unix_ms < first              ? first
              : unix_ms > year_9999_end_ms ? year_9999_end_ms
                                           : unix_ms;
    int64_t ms = (unix_ms % DAY_MS + DAY_MS) % DAY_MS;

    /* The inverse of days_from_civil; year 0 of the first era began in March. */
    int64_t days = (unix_ms - ms) / DAY_MS + 719468;
    int64_t era = (days >= 0 ? days : days - 146096) / 146097;
    int64_t day_of_era = days - era * 146097;
    int64_t year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year =
        day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t month = (5 * day_of_year + 2) / 153;

    memcpy(out, "0000-00-00T00:00:00.000Z", TIME_TEXT_LEN + 1);
    put_number(out, 4, year_of_era + era * 400 + (month >= 10));
    put_number(out + 5, 2, month < 10 ? month + 3 : month - 9);
    put_number(out + 8, 2, day_of_year - (153 * month + 2) / 5 + 1);
    put_number(out + 11, 2, ms / HOUR_MS);
    put_number(out + 14, 2, ms / MINUTE_MS % 60);
    put_number(out + 17, 2, ms / SECOND_MS % 60);
    put_number(out + 20, 3, ms % 1000);
}
