/* text.h - numbers, durations, times, ids and base64url: what travels as text. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/slice.h"

enum {
    ID_RANDOM_LEN = 21, /* after the prefix, of 123456789abcdefghijkmnopqrstuvwxyz */
    ID_MAX = 36,        /* prefix, random part and the terminating zero */
    RUN_ID_MAX = 28,    /* "run_", time, random part and the terminating zero */
    TIME_TEXT_LEN = 24, /* 2024-01-31T09:00:00.000Z */
};

/* Decimal digits only, the whole slice; ERR_INVALID otherwise and on overflow. A minus may
 * lead where the result has a sign. */
enum err text_to_u64(struct slice text, uint64_t *number);
enum err text_to_i64(struct slice text, int64_t *number);

/* "1h30m", "90s", "2d12h", "1hr", "1w": <digits><unit>, units w d hr h m s, any order, each
 * at most once; at most 100 characters. */
enum err text_to_duration_ms(struct slice text, int64_t *ms);

/* Seconds as the compact form with units w d h m s: 5400 -> "1h30m"; 0 -> "0s". */
void text_from_seconds(uint64_t seconds, char out[48]);

/* ISO 8601 as JavaScript's Date reads it: date, or date and time with optional seconds,
 * fraction and zone (Z, ±hh:mm; none: UTC), or a bare year. A day that the month lacks
 * counts on into the next. Unix milliseconds. */
enum err text_to_time(struct slice text, int64_t *unix_ms);

static const int64_t text_time_max_ms =
    INT64_C(8640000000000000); /* JavaScript's last Date */

/* A number as JavaScript takes it for a date: Unix ms, without what is behind the point.
 * ERR_INVALID: a Date cannot be so far from 1970. */
enum err text_number_to_time(double number, int64_t *unix_ms);

/* A date, or a duration from now; ERR_INVALID also behind the year 9999, which no answer
 * could show. */
enum err text_to_moment(struct slice text, int64_t now_ms, int64_t *unix_ms);

/* Writes TIME_TEXT_LEN characters and a zero; outside the years 0 to 9999 the nearest. */
void text_from_time(int64_t unix_ms, char out[TIME_TEXT_LEN + 1]);

/* prefix_ + 21 characters: nine of the time in ms, twelve drawn (61 bits). So ids made
 * later sort behind earlier ones, and the newest runs are neighbours in every index. */
void text_make_id(const char *prefix, int64_t unix_ms, char out[ID_MAX]);

/* The same, sorting after last, which it replaces ("": none yet): also ids of one
 * millisecond, and of a clock that went back, sort as they were made. The first four drawn
 * characters of those count up, from somewhere. last may have another prefix: ids of
 * several kinds can share one. */
void text_make_next_id(const char *prefix, int64_t unix_ms, char last[ID_MAX]);

/* An id that was made elsewhere becomes last if it sorts after it. An id of another form is
 * ignored. */
void text_note_id(const char *id, char last[ID_MAX]);

/* prefix_ followed by 21 to 26 lower-case letters and digits. */
bool text_is_id(struct slice text, const char *prefix);

/* len characters of the alphabet, from getrandom(2), without modulo bias. */
void text_random(char *out, size_t len, const char *alphabet);

/* Unpadded base64url (RFC 4648 §5). Returns the length. out has room for 4/3 of it. */
size_t text_to_base64url(struct slice bytes, char *out);

/* Refuses padding, white space and non-canonical last characters. */
enum err text_from_base64url(struct slice text, unsigned char *out, size_t *len);

/* Lower case. out has room for 2 * len characters and a zero. */
void text_to_hex(const unsigned char *bytes, size_t len, char *out);

/* Whole and well-formed (RFC 3629). */
bool text_is_utf8(struct slice text);

/* Decodes %xx in place-copy (plus_is_space: query strings); ERR_INVALID for a bad escape,
 * for %00 and for bytes that are not UTF-8. out has room for text.len bytes. */
enum err text_percent_decode(struct slice text, bool plus_is_space, char *out, size_t *len);

/* UTF-16 units, as JavaScript counts. */
size_t text_utf16_length(struct slice text);

/* At most 100 bytes of it, whole characters: for texts of errors. */
struct slice text_clip(struct slice text);
