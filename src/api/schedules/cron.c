/* cron.c - reads a cron expression and finds its next time.
 *
 *   after ─► its local date ─► matching days ─► their matching minutes
 *                                                 └─► zone_times ─► the first one after
 */
#include "api/schedules/cron.h"

enum {
    DAY_S = 86400,
    DAYS_MAX = 50 * 366, /* a fifth Friday in February can be 40 years away */
    JUMP_S = 3 * 3600,   /* a clock change is at most this much */
    HOURS_ALL = (1 << 24) - 1,
};

/* ---- reading ---- */

struct cron_field {
    const char *name;
    int min, max;
    const char *words; /* three letters each, beginning with the one for min */
};

enum { MINUTE, HOUR, DAY, MONTH, WEEKDAY, FIELDS };

static const struct cron_field fields[FIELDS] = {
    [MINUTE] = { "minute", 0, 59, "" },
    [HOUR] = { "hour", 0, 23, "" },
    [DAY] = { "day of month", 1, 31, "" },
    [MONTH] = { "month", 1, 12, "JANFEBMARAPRMAYJUNJULAUGSEPOCTNOVDEC" },
    [WEEKDAY] = { "day of week", 0, 7, "SUNMONTUEWEDTHUFRISAT" },
};

static enum err cron_refuse(struct failure *why, const struct cron_field *field,
                            struct slice part, const char *problem)
{
    if (part.len > 40)
        part.len = 40;
    return explain(why, ERR_INVALID, "Invalid cron expression: %s: '%.*s' %s", field->name,
                   SLICE_ARG(part), problem);
}

/* Takes up to four digits from the front. Returns false if there are none. */
static bool take_digits(struct slice *text, int *number)
{
    size_t len = 0;
    int sum = 0;
    while (len < text->len && len < 4 && text->ptr[len] >= '0' && text->ptr[len] <= '9')
        sum = sum * 10 + (text->ptr[len++] - '0');
    *text = slice_from(*text, len);
    *number = sum;
    return len > 0;
}

static bool take_word(const struct cron_field *field, struct slice *text, int *number)
{
    for (int i = 0; text->len >= 3 && field->words[3 * i]; i++) {
        bool same = true;
        for (int k = 0; k < 3; k++)
            same = same && (text->ptr[k] & ~32) == field->words[3 * i + k];
        if (same) {
            *text = slice_from(*text, 3);
            *number = field->min + i;
            return true;
        }
    }
    return false;
}

static bool take_char(struct slice *text, char c)
{
    if (!text->len || text->ptr[0] != c)
        return false;
    *text = slice_from(*text, 1);
    return true;
}

static bool take_value(const struct cron_field *field, struct slice *text, int *number)
{
    return take_digits(text, number) || take_word(field, text, number);
}

/* Takes the rule after a weekday: 5L, 5#2. Returns false if there is none. *good: it is
 * valid. */
static bool take_weekday_rule(struct slice *rest, int day, struct cron *cron, bool *good)
{
    uint8_t bit = (uint8_t)(1u << day % 7);
    int nth;
    if (take_char(rest, 'L') || take_char(rest, 'l')) {
        cron->last_weekdays |= bit;
        *good = !rest->len;
        return true;
    }
    if (!take_char(rest, '#'))
        return false;
    *good = take_digits(rest, &nth) && !rest->len && nth >= 1 && nth <= 5;
    if (*good)
        cron->nth_weekdays[nth - 1] |= bit;
    return true;
}

/* Reads one part of a list: *, a number or a range, each with an optional step. */
static enum err read_part(const struct cron_field *field, struct slice part,
                          struct cron *cron, uint64_t *set, struct failure *why)
{
    struct slice rest = part;
    int from = field->min, to = field->max, step = 1;
    bool good;

    if (field == &fields[DAY] && (slice_is(part, "L") || slice_is(part, "l"))) {
        cron->last_day = true;
        return OK;
    }
    bool any = take_char(&rest, '*') || take_char(&rest, '?');
    if (!any) {
        if (!take_value(field, &rest, &from))
            return cron_refuse(why, field, part, "is not a number, a range, a step or *");
        to = from;
        if (take_char(&rest, '-') && !take_value(field, &rest, &to))
            return cron_refuse(why, field, part, "is a range without an end");
    }
    if (from < field->min || to > field->max || from > field->max || from > to)
        return explain(
            why, ERR_INVALID,
            "Invalid cron expression: %s: '%.*s' must be ascending and within %d to %d",
            field->name, (int)(part.len > 40 ? 40 : part.len), part.ptr, field->min,
            field->max);
    if (!any && field == &fields[WEEKDAY] && from == to &&
        take_weekday_rule(&rest, from, cron, &good))
        return good ? OK : cron_refuse(why, field, part, "is neither like 5L nor like 5#2");
    if (take_char(&rest, '/')) {
        if (!take_digits(&rest, &step) || step < 1)
            return cron_refuse(why, field, part, "needs a step of 1 or more after the /");
        if (step > field->max - field->min + 1 && !cron->overstepped)
            cron->overstepped = field->name;
        if (!any && from == to)
            to = field->max;
    }
    if (rest.len)
        return cron_refuse(why, field, part, "is not a number, a range, a step or *");
    for (int i = from; i <= to; i += step)
        *set |= UINT64_C(1) << i;
    return OK;
}

static enum err read_field(const struct cron_field *field, struct slice text,
                           struct cron *cron, uint64_t *set, struct failure *why)
{
    struct slice part;
    enum err err = OK;
    while (!err && slice_split(&text, ',', &part))
        err = read_part(field, part, cron, set, why);
    return err;
}

/* Returns true if a month of the expression can contain one of its days. */
static bool can_run(const struct cron *cron)
{
    static const int longest[] = { 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    bool weekday_rule = cron->weekdays || cron->last_weekdays;
    for (int i = 0; i < 5; i++)
        weekday_rule = weekday_rule || cron->nth_weekdays[i];
    if (cron->every_day || (weekday_rule && !cron->every_weekday) || cron->last_day)
        return true;
    for (int month = 1; month <= 12; month++)
        for (int day = 1; day <= longest[month - 1]; day++)
            if (cron->months >> month & 1 && cron->days >> day & 1)
                return true;
    return false;
}

enum err cron_read(struct slice text, struct cron *cron, struct failure *why)
{
    struct cron read = { 0 };
    uint64_t sets[FIELDS] = { 0 };
    struct slice rest = slice_trim(text), part, parts[FIELDS];
    size_t count = 0;

    if (rest.len > CRON_TEXT_MAX)
        return explain(why, ERR_INVALID, "Invalid cron expression: more than %d characters",
                       CRON_TEXT_MAX);
    while (rest.ptr && rest.len) {
        if (!slice_split(&rest, ' ', &part) || !part.len)
            continue;
        if (count == FIELDS)
            return explain(why, ERR_INVALID,
                           "CRON expressions with seconds are not allowed");
        parts[count++] = part;
    }
    if (count != FIELDS)
        return explain(why, ERR_INVALID,
                       "Invalid cron expression: it has %zu fields and needs five: minute, "
                       "hour, day of month, month, day of week",
                       count);
    for (int i = 0; i < FIELDS; i++) {
        enum err err = read_field(&fields[i], parts[i], &read, &sets[i], why);
        if (err)
            return err;
    }
    read.minutes = sets[MINUTE];
    read.hours = (uint32_t)sets[HOUR];
    read.days = (uint32_t)sets[DAY];
    read.months = (uint16_t)sets[MONTH];
    read.weekdays = (uint8_t)((sets[WEEKDAY] | sets[WEEKDAY] >> 7) & 0x7f);
    read.every_day = read.days == 0xfffffffe;
    read.every_weekday = read.weekdays == 0x7f;
    if (!can_run(&read))
        return explain(why, ERR_INVALID,
                       "Invalid cron expression: no month of it has such a day");
    *cron = read;
    return OK;
}

enum err cron_read_new(struct slice text, struct cron *cron, struct failure *why)
{
    enum err err = cron_read(text, cron, why);
    if (!err && cron->overstepped)
        err = explain(why, ERR_INVALID,
                      "Invalid cron expression: %s: a step is larger than the range of the "
                      "field, so it would not repeat as written",
                      cron->overstepped);
    return err;
}

/* ---- days ---- */

struct date {
    int64_t days; /* since 1970-01-01 */
    int year, month, day, weekday, month_len;
};

static int month_length(int year, int month)
{
    static const int lengths[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return lengths[month - 1] + (month == 2 && leap);
}

/* Converts days since 1970-01-01 to a date, by eras of 400 years that begin on 1 March. */
static struct date date_of(int64_t days)
{
    int64_t shifted = days + 719468;
    int64_t era = (shifted - (shifted < 0 ? 146096 : 0)) / 146097;
    int64_t day_of_era = shifted - era * 146097;
    int64_t year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year =
        day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t month = (5 * day_of_year + 2) / 153;
    struct date date = { .days = days };
    date.day = (int)(day_of_year - (153 * month + 2) / 5 + 1);
    date.month = (int)(month < 10 ? month + 3 : month - 9);
    date.year = (int)(year_of_era + era * 400 + (date.month <= 2));
    date.weekday = (int)(((days + 4) % 7 + 7) % 7);
    date.month_len = month_length(date.year, date.month);
    return date;
}

static struct date next_day(struct date date)
{
    date.days++;
    date.weekday = (date.weekday + 1) % 7;
    if (++date.day > date.month_len) {
        date.day = 1;
        if (++date.month > 12) {
            date.month = 1;
            date.year++;
        }
        date.month_len = month_length(date.year, date.month);
    }
    return date;
}

static bool day_fits(const struct cron *cron, const struct date *date)
{
    if (!(cron->months >> date->month & 1))
        return false;
    if (cron->every_day && cron->every_weekday)
        return true;
    bool day =
        cron->days >> date->day & 1 || (cron->last_day && date->day == date->month_len);
    bool weekday =
        cron->weekdays >> date->weekday & 1 ||
        cron->nth_weekdays[(date->day - 1) / 7] >> date->weekday & 1 ||
        (cron->last_weekdays >> date->weekday & 1 && date->day + 7 > date->month_len);
    if (cron->every_day)
        return weekday;
    return cron->every_weekday ? day : day || weekday;
}

/* ---- the next time ---- */

/* Sets *best to time if time is later than after and earlier than *best; *best 0 means
 * none. */
static void take_earlier(int64_t *best, int64_t time, int64_t after)
{
    if (time > after && (!*best || time < *best))
        *best = time;
}

static bool minute_fits(const struct cron *cron, int64_t minute)
{
    return cron->hours >> minute / 60 & 1 && cron->minutes >> minute % 60 & 1;
}

/* Returns the first time on a day without a clock change nearby; 0: none. */
static int64_t first_on_steady_day(const struct cron *cron, int64_t day_start,
                                   int32_t offset, int64_t after)
{
    int64_t past = after + offset - day_start;
    for (int64_t minute = past >= 0 ? past / 60 + 1 : 0; minute < DAY_S / 60; minute++)
        if (minute_fits(cron, minute))
            return day_start + minute * 60 - offset;
    return 0;
}

/* Returns the first time on this local day that is later than after; 0: none. In
 * seconds. */
static int64_t first_on(const struct cron *cron, const struct zone *zone, int64_t day_start,
                        int64_t after)
{
    int32_t offset = zone_offset(zone, day_start - DAY_S);
    if (zone_offset(zone, day_start + 2 * DAY_S) == offset)
        return first_on_steady_day(cron, day_start, offset, after);

    bool every_hour = cron->hours == HOURS_ALL;
    int64_t best = 0, found_at = 0;
    /* nothing before this minute can be later than after */
    int64_t past = zone_wall(zone, after) - JUMP_S - day_start;
    for (int64_t minute = past > 0 ? past / 60 : 0; minute < DAY_S / 60; minute++) {
        int64_t wall = day_start + minute * 60;
        if (best && wall > found_at + JUMP_S)
            break;
        if (!minute_fits(cron, minute))
            continue;
        struct zone_times times = zone_times(zone, wall);
        if (times.count || !every_hour)
            take_earlier(&best, times.first, after);
        if (times.count == 2 && every_hour)
            take_earlier(&best, times.second, after);
        if (best && !found_at)
            found_at = wall;
    }
    return best;
}

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

int64_t cron_next(const struct cron *cron, const struct zone *zone, int64_t after_ms)
{
    /* A stored time may be any number; after this one, days can no longer be computed. */
    static const int64_t last_ms = INT64_MAX - 1000 * (int64_t)DAY_S * (DAYS_MAX + 2);
    if (after_ms > last_ms)
        return 0;
    int64_t after = floor_div(after_ms, 1000), best = 0;
    /* Begin with the day before: a clock change at midnight may have moved its times
     * into today. */
    struct date date = date_of(floor_div(zone_wall(zone, after), DAY_S) - 1);
    for (int i = 0; i < DAYS_MAX; i++, date = next_day(date)) {
        if (!day_fits(cron, &date))
            continue;
        int64_t time = first_on(cron, zone, date.days * DAY_S, after);
        if (!time)
            continue;
        if (best)
            return 1000 * (time < best ? time : best);
        best = time;
        /* Check the next day too: if the clock is set back over midnight, one of its times
         * may come before the end of this day. */
        if (date.days * DAY_S + DAY_S - zone_wall(zone, best) > JUMP_S)
            return 1000 * best;
    }
    return 1000 * best;
}
