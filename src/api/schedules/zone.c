/* zone.c - reads TZif files, version 2 and up, with their footers.
 *
 *   header, 32-bit data   skipped
 *   header, 64-bit data   transitions[timecnt], types[timecnt],
 *                         {offset, dst, name}[typecnt]
 *   "\n" footer "\n"      the rule after the last transition, as a POSIX TZ string:
 *                         EST5EDT,M3.2.0,M11.1.0   <+01>-1   IST-1GMT0,M10.5.0,M3.5.0/1
 *
 * The zone data in use contains no leap seconds, except "right/", which is rejected by
 * name. A footer's rule is evaluated for the UTC year of the given time: no rule has a
 * change within a day of New Year. */
#include "api/schedules/zone.h"

#include <stdio.h>
#include <unistd.h>

#include "base/mem.h"

enum {
    FILE_MAX = 65536,
    HEADER_LEN = 44,
    FOOTER_MAX = 96,
    DAY_S = 86400,
};

/* One of the two yearly changes in a footer. */
struct rule {
    /* 'M': month, week, weekday; 'J': day 1–365, never 29 February; 'n': 0–365 */
    char kind;
    int month, week, day;
    int32_t time_s; /* local time before the change; −167 h to 167 h */
};

struct zone {
    char name[ZONE_NAME_MAX];
    int64_t *transitions;
    int32_t *offsets; /* in effect from the transition of the same index */
    size_t count;
    int32_t first_offset; /* before the first transition */
    bool has_footer, has_dst;
    int32_t standard, dst; /* the footer's offsets */
    struct rule to_dst, to_standard;
};

/* ---- the name ---- */

static bool name_is_safe(struct slice name)
{
    struct slice rest = name, part;
    if (!name.len || name.len >= ZONE_NAME_MAX)
        return false;
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!letter && !(c >= '0' && c <= '9') && !(c && strchr("/_+-", c)))
            return false;
    }
    while (slice_split(&rest, '/', &part))
        if (!part.len)
            return false;
    return !slice_starts(name, "right/") && !slice_starts(name, "posix/") &&
           !slice_is(name, "localtime") && !slice_is(name, "posixrules");
}

/* ---- the footer ---- */

static bool take_char(struct slice *text, char c)
{
    if (!text->len || text->ptr[0] != c)
        return false;
    *text = slice_from(*text, 1);
    return true;
}

static bool take_number(struct slice *text, int max, int *number)
{
    size_t len = 0;
    int sum = 0;
    while (len < text->len && len < 4 && text->ptr[len] >= '0' && text->ptr[len] <= '9')
        sum = sum * 10 + (text->ptr[len++] - '0');
    *text = slice_from(*text, len);
    *number = sum;
    return len > 0 && sum <= max;
}

/* Takes a zone's abbreviation: letters, or anything between < and >. */
static bool take_name(struct slice *text)
{
    bool quoted = take_char(text, '<');
    size_t len = 0;
    while (len < text->len &&
           (quoted ? text->ptr[len] != '>'
                   : (text->ptr[len] | 32) >= 'a' && (text->ptr[len] | 32) <= 'z'))
        len++;
    *text = slice_from(*text, len);
    return len > 0 && (!quoted || take_char(text, '>'));
}

/* Takes [+-]h[h][:mm[:ss]] and returns it in seconds. */
static bool take_time(struct slice *text, int32_t *seconds)
{
    bool minus = take_char(text, '-');
    int hours, minutes = 0, rest = 0;
    if (!minus)
        take_char(text, '+');
    if (!take_number(text, 167, &hours))
        return false;
    if (take_char(text, ':') && !take_number(text, 59, &minutes))
        return false;
    if (take_char(text, ':') && !take_number(text, 59, &rest))
        return false;
    *seconds = hours * 3600 + minutes * 60 + rest;
    if (minus)
        *seconds = -*seconds;
    return true;
}

static bool take_rule(struct slice *text, struct rule *rule)
{
    bool good;
    if (!take_char(text, ','))
        return false;
    rule->time_s = 2 * 3600;
    if (take_char(text, 'M')) {
        rule->kind = 'M';
        good = take_number(text, 12, &rule->month) && rule->month > 0 &&
               take_char(text, '.') && take_number(text, 5, &rule->week) &&
               rule->week > 0 && take_char(text, '.') && take_number(text, 6, &rule->day);
    } else {
        rule->kind = take_char(text, 'J') ? 'J' : 'n';
        good = take_number(text, 365, &rule->day) && (rule->kind == 'n' || rule->day > 0);
    }
    return good && (!take_char(text, '/') || take_time(text, &rule->time_s));
}

static bool read_footer(struct zone *zone, struct slice text)
{
    if (!text.len)
        return true;
    if (!take_name(&text) || !take_time(&text, &zone->standard))
        return false;
    zone->standard = -zone->standard; /* POSIX counts westward */
    zone->has_footer = true;
    if (!text.len)
        return true;
    if (!take_name(&text))
        return false;
    zone->has_dst = true;
    zone->dst = zone->standard + 3600;
    if (text.len && text.ptr[0] != ',') {
        if (!take_time(&text, &zone->dst))
            return false;
        zone->dst = -zone->dst;
    }
    return take_rule(&text, &zone->to_dst) && take_rule(&text, &zone->to_standard) &&
           !text.len;
}

/* ---- the file ---- */

static int64_t big_endian(const unsigned char *at, int bytes)
{
    uint64_t number = at[0] & 0x80 ? ~UINT64_C(0) : 0;
    for (int i = 0; i < bytes; i++)
        number = number << 8 | at[i];
    return (int64_t)number;
}

struct header {
    char version;
    size_t ut, std, leap, time, type, chars; /* counts */
};

/* Returns false if this is not a TZif file or names more entries than can be in it. */
static bool read_header(struct slice file, struct header *header)
{
    size_t counts[6];
    if (file.len < HEADER_LEN || !slice_starts(file, "TZif"))
        return false;
    for (int i = 0; i < 6; i++) {
        int64_t count = big_endian((const unsigned char *)file.ptr + 20 + 4 * i, 4);
        if (count < 0 || count > FILE_MAX)
            return false;
        counts[i] = (size_t)count;
    }
    *header = (struct header){ file.ptr[4], counts[0], counts[1], counts[2],
                               counts[3],   counts[4], counts[5] };
    return true;
}

static size_t data_len(const struct header *header, size_t time_size)
{
    return header->time * (time_size + 1) + header->type * 6 + header->chars +
           header->leap * (time_size + 4) + header->std + header->ut;
}

/* Reads the 64-bit data: the transitions and the offset that follows each. */
static bool read_data(struct zone *zone, const struct header *header, struct slice data)
{
    const unsigned char *times = (const unsigned char *)data.ptr;
    const unsigned char *types = times + header->time * 8;
    const unsigned char *infos = types + header->time;
    if (!header->type)
        return false;
    zone->count = header->time;
    zone->transitions = mem_new_array(int64_t, zone->count);
    zone->offsets = mem_new_array(int32_t, zone->count);
    zone->first_offset = (int32_t)big_endian(infos, 4);
    for (size_t i = 0; i < zone->count; i++) {
        if (types[i] >= header->type)
            return false;
        zone->transitions[i] = big_endian(times + 8 * i, 8);
        zone->offsets[i] = (int32_t)big_endian(infos + 6 * types[i], 4);
        if (i && zone->transitions[i] <= zone->transitions[i - 1])
            return false;
    }
    return true;
}

static bool read_file(struct zone *zone, struct slice file)
{
    struct header header;
    if (!read_header(file, &header) || header.version < '2')
        return false;
    size_t skip = HEADER_LEN + data_len(&header, 4);
    if (skip > file.len)
        return false;
    file = slice_from(file, skip);
    if (!read_header(file, &header))
        return false;
    file = slice_from(file, HEADER_LEN);
    size_t len = data_len(&header, 8);
    if (len > file.len || !read_data(zone, &header, file))
        return false;
    file = slice_from(file, len);
    if (!take_char(&file, '\n') || !file.len || file.len > FOOTER_MAX ||
        file.ptr[file.len - 1] != '\n')
        return false;
    file.len--;
    return read_footer(zone, file);
}

enum err zone_read(struct slice name, struct slice file, struct zone **zone)
{
    if (!name_is_safe(name))
        return ERR_INVALID;
    struct zone *opened = mem_new(struct zone);
    memcpy(opened->name, name.ptr, name.len);
    if (!slice_is(name, "UTC") && !read_file(opened, file)) {
        zone_close(opened);
        return ERR_INVALID;
    }
    *zone = opened;
    return OK;
}

enum { PATH_MAX_LEN = ZONE_NAME_MAX + 24 };

static void print_path(struct slice name, char path[PATH_MAX_LEN])
{
    snprintf(path, PATH_MAX_LEN, "/usr/share/zoneinfo/%.*s", SLICE_ARG(name));
}

bool zone_is_installed(struct slice name)
{
    char path[PATH_MAX_LEN];
    if (!name_is_safe(name))
        return false;
    print_path(name, path);
    return access(path, R_OK) == 0;
}

static struct slice load(struct slice name, char content[FILE_MAX])
{
    char path[PATH_MAX_LEN];
    print_path(name, path);
    FILE *file = fopen(path, "rbe");
    size_t len = file ? fread(content, 1, FILE_MAX, file) : 0;
    if (file)
        fclose(file);
    return (struct slice){ content, len < FILE_MAX ? len : 0 };
}

enum err zone_open(struct slice name, struct zone **zone)
{
    if (!name_is_safe(name))
        return ERR_INVALID;
    if (slice_is(name, "UTC"))
        return zone_read(name, (struct slice){ 0 }, zone);
    char *content = mem_new_array(char, FILE_MAX);
    enum err err = zone_read(name, load(name, content), zone);
    free(content);
    return err;
}

void zone_close(struct zone *zone)
{
    if (!zone)
        return;
    free(zone->transitions);
    free(zone->offsets);
    free(zone);
}

const char *zone_name(const struct zone *zone)
{
    return zone->name;
}

/* ---- the calendar ---- */

static bool is_leap(int64_t year)
{
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

/* Returns the days from 1970-01-01 to 1 January of a year. */
static int64_t days_to_year(int64_t year)
{
    int64_t before = year - 1;
    return 365 * (year - 1970) + (floor_div(before, 4) - 492) -
           (floor_div(before, 100) - 19) + (floor_div(before, 400) - 4);
}

static int64_t year_of(int64_t days)
{
    int64_t year = 1970 + floor_div(days * 400, 146097);
    while (days_to_year(year) > days)
        year--;
    while (days_to_year(year + 1) <= days)
        year++;
    return year;
}

/* Days from 1970-01-01. */
static int64_t rule_day(const struct rule *rule, int64_t year)
{
    static const int starts[] = {
        0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365
    };
    int64_t first = days_to_year(year);
    if (rule->kind == 'n')
        return first + rule->day;
    if (rule->kind == 'J')
        return first + rule->day - 1 + (is_leap(year) && rule->day > 59);
    int64_t start = first + starts[rule->month - 1] + (is_leap(year) && rule->month > 2);
    int64_t end = first + starts[rule->month] + (is_leap(year) && rule->month >= 2);
    int64_t weekday = ((start + 4) % 7 + 7) % 7; /* 1970-01-01 was a Thursday */
    int64_t day = start + (rule->day - weekday + 7) % 7 + 7 * (rule->week - 1);
    while (day >= end)
        day -= 7;
    return day;
}

/* Returns the offset after the last transition, by the footer's rule. */
static int32_t footer_offset(const struct zone *zone, int64_t utc_s)
{
    if (!zone->has_dst)
        return zone->standard;
    int64_t year = year_of(floor_div(utc_s, DAY_S));
    int64_t to_dst =
        rule_day(&zone->to_dst, year) * DAY_S + zone->to_dst.time_s - zone->standard;
    int64_t to_standard =
        rule_day(&zone->to_standard, year) * DAY_S + zone->to_standard.time_s - zone->dst;
    bool dst = to_dst < to_standard ? utc_s >= to_dst && utc_s < to_standard
                                    : utc_s >= to_dst || utc_s < to_standard;
    return dst ? zone->dst : zone->standard;
}

int32_t zone_offset(const struct zone *zone, int64_t utc_s)
{
    size_t low = 0,
           high = zone->count; /* transitions[low - 1] <= utc_s < transitions[high] */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (zone->transitions[middle] <= utc_s)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == zone->count && zone->has_footer)
        return footer_offset(zone, utc_s);
    return low ? zone->offsets[low - 1] : zone->first_offset;
}

/* Tries the offsets of a day before and a day after. No others can be in effect, because
 * two changes of a zone are more than two days apart. */
struct zone_times zone_times(const struct zone *zone, int64_t wall_s)
{
    int64_t before = wall_s - zone_offset(zone, wall_s - DAY_S);
    int64_t after = wall_s - zone_offset(zone, wall_s + DAY_S);
    bool early = zone_wall(zone, before) == wall_s;
    bool late = zone_wall(zone, after) == wall_s;
    if (early && late && before != after)
        return (struct zone_times){ 2, before, after };
    if (early || late)
        return (struct zone_times){ 1, early ? before : after, 0 };
    return (struct zone_times){ 0, before, 0 };
}
