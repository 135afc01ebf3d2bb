/* text.h - converts numbers, durations, times, ids and base64url from and to text. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/slice.h"

enum {
    ID_RANDOM_LEN = 21, /* after the prefix, from 123456789abcdefghijkmnopqrstuvwxyz */
    ID_MAX = 36,        /* prefix, random part and the terminating zero */
    RUN_ID_MAX = 28,    /* "run_", time, random part and the terminating zero */
    TIME_TEXT_LEN = 24, /* 2024-01-31T09:00:00.000Z */
};

/* Reads decimal digits only, the whole slice; ERR_INVALID otherwise and on overflow. The
 * signed variant accepts a leading minus. */
enum err text_to_u64(struct slice text, uint64_t *number);
enum err text_to_i64(struct slice text, int64_t *number);

/* Reads "1h30m", "90s", "2d12h", "1hr", "1w": <digits><unit>, in any order. Units are w d
 * hr h m s, each at most once; at most 100 characters. */
enum err text_to_duration_ms(struct slice text, int64_t *ms);

/* Writes seconds compactly, with the units w d h m s: 5400 -> "1h30m"; 0 -> "0s". */
void text_from_seconds(uint64_t seconds, char out[48]);

/* Reads ISO 8601 as JavaScript's Date does: a date, a date and time with optional seconds,
 * fraction and zone (Z, ±hh:mm; none: UTC), or a bare year. A day that the month lacks
 * carries over into the next month. Unix milliseconds. */
enum err text_to_time(struct slice text, int64_t *unix_ms);

static const int64_t text_time_max_ms =
    INT64_C(8640000000000000); /* JavaScript's last Date */

/* Converts a number as JavaScript converts it to a Date: Unix ms, without the fraction.
 * ERR_INVALID: too far from 1970 for a Date. */
enum err text_number_to_time(double number, int64_t *unix_ms);

/* Reads a date, or a duration from now. ERR_INVALID also for times after the year 9999,
 * which no response could show. */
enum err text_to_moment(struct slice text, int64_t now_ms, int64_t *unix_ms);

/* Writes TIME_TEXT_LEN characters and a zero. Years are limited to 0 to 9999. */
void text_from_time(int64_t unix_ms, char out[TIME_TEXT_LEN + 1]);

/* Makes an id: prefix_ and 21 characters, nine of the time in ms, twelve drawn (61 bits).
 * Later ids sort after earlier ones, and the newest runs are adjacent in every index. */
void text_make_id(const char *prefix, int64_t unix_ms, char out[ID_MAX]);

/* Makes an id that sorts after last, and stores it there ("": none yet). Ids of the same
 * millisecond, or of a clock that went back, thus sort in the order in which they were
 * made: the first four drawn characters count up from a random start. last may have another
 * prefix, so several kinds of ids can share one. */
void text_make_next_id(const char *prefix, int64_t unix_ms, char last[ID_MAX]);

/* Replaces last with an id that was made elsewhere, if that one sorts after it. Ignores ids
 * of another form. */
void text_note_id(const char *id, char last[ID_MAX]);

/* Returns true for prefix_ followed by 21 to 26 lower-case letters and digits. */
bool text_is_id(struct slice text, const char *prefix);

/* Draws len characters of the alphabet from getrandom(2), without modulo bias. */
void text_random(char *out, size_t len, const char *alphabet);

/* Writes unpadded base64url (RFC 4648 §5), 4/3 of bytes.len; returns the length. */
size_t text_to_base64url(struct slice bytes, char *out);

/* Rejects padding, white space and non-canonical last characters. */
enum err text_from_base64url(struct slice text, unsigned char *out, size_t *len);

/* Writes lower-case hex digits. out has space for 2 * len characters and a zero. */
void text_to_hex(const unsigned char *bytes, size_t len, char *out);

/* Returns true if the text is complete, well-formed UTF-8 (RFC 3629). */
bool text_is_utf8(struct slice text);

/* Decodes %xx, and + if plus_is_space (query strings), into out, which has text.len bytes.
 * ERR_INVALID for a bad escape, for %00 and for bytes that are not UTF-8. */
enum err text_percent_decode(struct slice text, bool plus_is_space, char *out, size_t *len);

/* Returns the number of UTF-16 units, as JavaScript counts. */
size_t text_utf16_length(struct slice text);

/* Returns at most the first 100 bytes, in whole characters: for error texts. */
struct slice text_clip(struct slice text);
