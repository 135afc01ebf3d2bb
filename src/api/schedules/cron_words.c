/* cron_words.c - describes a cron expression in an English sentence.
 *
 *      "At 09:00 AM" | "Every 5 minutes" | "At 30 minutes past the hour, between …"
 *          ", on day 1 of the month" ", Monday through Friday" ", only in January" */
#include "api/schedules/cron.h"

static const char *const month_names[] = {
    "January", "February", "March",     "April",   "May",      "June",
    "July",    "August",   "September", "October", "November", "December",
};
static const char *const day_names[] = {
    "Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday",
};
static const char *const nth_names[] = { "first", "second", "third", "fourth", "fifth" };

/* The numbers of a set, their count, and the distance between them. */
struct members {
    int values[64], count, step; /* step 0: the distances differ */
};

static struct members members_of(uint64_t set, int from, int to)
{
    struct members found = { .step = 0 };
    for (int i = from; i <= to; i++)
        if (set >> i & 1)
            found.values[found.count++] = i;
    if (found.count > 1)
        found.step = found.values[1] - found.values[0];
    for (int i = 2; i < found.count; i++)
        if (found.values[i] - found.values[i - 1] != found.step)
            found.step = 0;
    return found;
}

/* Returns n if the numbers are every nth of the range, from its first number to its end;
 * 0 if not. */
static int step_of(const struct members *found, int from, int to)
{
    bool whole = found->count > 2 && found->values[0] == from &&
                 found->values[found->count - 1] + found->step > to;
    return whole ? found->step : 0;
}

typedef void item_fn(struct buf *out, int number);

/* Adds "a", "a and b" or "a, b, and c"; consecutive numbers as "a through c". */
static void add_list(struct buf *out, const struct members *found, item_fn *item)
{
    if (found->step == 1 && found->count > 2) {
        item(out, found->values[0]);
        buf_add_text(out, " through ");
        item(out, found->values[found->count - 1]);
        return;
    }
    for (int i = 0; i < found->count; i++) {
        if (i)
            buf_add_text(out, i + 1 < found->count ? ", "
                              : found->count > 2   ? ", and "
                                                   : " and ");
        item(out, found->values[i]);
    }
}

static void number_item(struct buf *out, int number)
{
    buf_print(out, "%d", number);
}

static void month_item(struct buf *out, int number)
{
    buf_add_text(out, month_names[number - 1]);
}

static void day_item(struct buf *out, int number)
{
    buf_add_text(out, day_names[number]);
}

static void clock_item(struct buf *out, int minutes)
{
    int hour = minutes / 60;
    buf_print(out, "%02d:%02d %s", hour % 12 ? hour % 12 : 12, minutes % 60,
              hour < 12 ? "AM" : "PM");
}

static void hour_item(struct buf *out, int hour)
{
    clock_item(out, hour * 60);
}

/* ---- the time of day ---- */

static void add_minutes(struct buf *out, const struct members *minutes)
{
    int step = step_of(minutes, 0, 59);
    if (step == 1)
        buf_add_text(out, "Every minute");
    else if (step)
        buf_print(out, "Every %d minutes", step);
    else {
        buf_add_text(out, "At ");
        add_list(out, minutes, number_item);
        buf_add_text(out, minutes->count == 1 && minutes->values[0] == 1
                              ? " minute past the hour"
                              : " minutes past the hour");
    }
}

static void add_hours(struct buf *out, const struct members *hours)
{
    int step = step_of(hours, 0, 23);
    if (step == 1)
        return;
    if (step) {
        buf_print(out, ", every %d hours", step);
        return;
    }
    buf_add_text(out, ", in the hours that begin at ");
    add_list(out, hours, hour_item);
}

static void add_time(const struct cron *cron, struct buf *out)
{
    struct members minutes = members_of(cron->minutes, 0, 59);
    struct members hours = members_of(cron->hours, 0, 23);
    bool every_hour = hours.count == 24;

    if (minutes.count == 1 && !every_hour && hours.count <= 4) {
        buf_add_text(out, "At ");
        for (int i = 0; i < hours.count; i++)
            hours.values[i] = hours.values[i] * 60 + minutes.values[0];
        hours.step = 0;
        add_list(out, &hours, clock_item);
    } else if (every_hour && minutes.count == 1 && minutes.values[0] == 0) {
        buf_add_text(out, "Every hour");
    } else {
        add_minutes(out, &minutes);
        add_hours(out, &hours);
    }
}

/* ---- days and months ---- */

static void add_days(const struct cron *cron, struct buf *out)
{
    struct members days = members_of(cron->days, 1, 31);
    if (cron->every_day)
        return;
    if (days.count) {
        buf_add_text(out, days.count == 1 ? ", on day " : ", on days ");
        add_list(out, &days, number_item);
        buf_add_text(out, " of the month");
    }
    if (cron->last_day)
        buf_add_text(out, days.count ? " and on its last day"
                                     : ", on the last day of the month");
}

static void add_weekdays(const struct cron *cron, struct buf *out)
{
    struct members days = members_of(cron->weekdays, 0, 6);
    const char *before = cron->every_day ? ", " : ", or ";
    if (cron->every_weekday)
        return;
    if (days.count) {
        buf_add_text(out, before);
        if (days.step != 1 || days.count < 3)
            buf_add_text(out, cron->every_day ? "only on " : "on ");
        add_list(out, &days, day_item);
        before = ", and ";
    }
    for (int day = 0; day < 7; day++) {
        for (int nth = 0; nth < 5; nth++)
            if (cron->nth_weekdays[nth] >> day & 1) {
                buf_print(out, "%son the %s %s of the month", before, nth_names[nth],
                          day_names[day]);
                before = ", and ";
            }
        if (cron->last_weekdays >> day & 1) {
            buf_print(out, "%son the last %s of the month", before, day_names[day]);
            before = ", and ";
        }
    }
}

void cron_describe(const struct cron *cron, struct buf *out)
{
    struct members months = members_of(cron->months, 1, 12);
    add_time(cron, out);
    add_days(cron, out);
    add_weekdays(cron, out);
    if (months.count < 12) {
        buf_add_text(out, months.step == 1 && months.count > 2 ? ", " : ", only in ");
        add_list(out, &months, month_item);
    }
}
