/* scan.h - JSON without a tree.
 *
 * A validating scanner that can stop after any byte, and readers that walk text known to be
 * valid and yield spans of it. Values keep their bytes: 12345678901234567890, 1e400, -0,
 * "\u0000" and "\ud83d" come out as they went in.
 *
 * The scanner accepts the UTF-8 that JSON.parse accepts. An escape may name half of a
 * surrogate pair alone. A reader decodes such a half to the three bytes of its code point
 * (WTF-8), and two escapes that form a pair to the four bytes of their character, so that
 * two spellings of a string decode to the same bytes. Raw bytes of a half are not UTF-8 and
 * are rejected. (RFC 8259, https://simonsapin.github.io/wtf-8) */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/slice.h"

enum {
    SCAN_NEAR_WORDS = 4,        /* for the first 256 levels; more are allocated */
    SCAN_FAR_MAX = 1024 * 1024, /* bytes that one scan allocates for more levels at most */
    SCAN_DEPTH_MAX = SCAN_NEAR_WORDS * 64 + SCAN_FAR_MAX * 8,
    SCAN_ESCAPE_MAX = 12, /* bytes: two surrogates */
};

/* A resumable validator: feed pieces, then finish. Accepts one value with white space
 * around it.
 *
 * A level of nesting costs one bit: is it an object? Valid JSON has at least two bytes for
 * each level, so these bits are at most a sixteenth of the text, and only a text of more
 * than 16 MiB reaches SCAN_FAR_MAX. */
struct scan {
    uint8_t state;
    uint8_t pending;   /* missing bytes of a UTF-8 sequence, or missing hex digits */
    uint8_t low, high; /* bounds of the next UTF-8 byte */
    bool in_key;       /* the string being read is a member's name */
    bool too_deep;     /* rejected because of one level too many */
    const char *word;  /* rest of true, false, null */
    size_t depth;
    uint64_t near[SCAN_NEAR_WORDS]; /* one bit a level: is it an object? */
    uint64_t *far;                  /* the same for more levels; owned; NULL until needed */
    size_t far_words;
    size_t offset; /* bytes accepted, which is where an error is */
};

void scan_init(struct scan *scan);
enum err scan_feed(struct scan *scan, struct slice piece);

/* Frees what the scan holds. ERR_INVALID if the value is not complete. Finish a scan that
 * is abandoned, too. Finishing it again returns the same. */
enum err scan_finish(struct scan *scan);

/* Returns ERR_INVALID and explains where a piece was rejected, and why. */
enum err scan_explain(const struct scan *scan, struct failure *why);

/* Validates a whole text. */
bool scan_is_json(struct slice text);

/* The same for shared bytes, which keep the result. Loop thread only, or the thread that
 * created the bytes and has not handed them over yet. Returns false for NULL. */
bool scan_bytes_are_json(struct bytes *bytes);

/* ---- readers: only for text that the validator has accepted ---- */

enum scan_type {
    SCAN_NONE,
    SCAN_NULL,
    SCAN_FALSE,
    SCAN_TRUE,
    SCAN_NUMBER,
    SCAN_STRING,
    SCAN_ARRAY,
    SCAN_OBJECT
};

/* Returns the type by the first character after white space. Absent or empty: SCAN_NONE. */
enum scan_type scan_type(struct slice value);

struct scan_members {
    struct slice rest;
};

/* Begins a walk over the members of an object or the elements of an array, in order. */
struct scan_members scan_members(struct slice container);

/* key is the raw string without its quotes, escapes undecoded; value is trimmed. */
bool scan_next_member(struct scan_members *members, struct slice *key, struct slice *value);
bool scan_next_element(struct scan_members *members, struct slice *value);

/* Returns the raw value of a member, the last one if the name repeats (like JSON.parse).
 * Absent if there is none. Escaped spellings of the name count, too. */
struct slice scan_member(struct slice object, const char *name);

/* Returns a JSON string without its quotes, still escaped; absent for another type. */
struct slice scan_unquoted(struct slice value);

/* Decodes a JSON string (with its quotes) and appends it. \u0000 becomes a zero byte.
 * Returns false for another type. */
bool scan_string(struct slice value, struct buf *out);

/* The same for the text between the quotes. */
void scan_unescape(struct slice raw, struct buf *out);

/* Decodes the text between the quotes in pieces. The zero value begins a string, and the
 * value is zero again after its end. The end also adds half of a surrogate pair whose other
 * half did not arrive. */
struct scan_text {
    char escape[SCAN_ESCAPE_MAX]; /* an incomplete escape */
    uint8_t len;
};

void scan_text_feed(struct scan_text *text, struct slice raw, struct buf *out);
void scan_text_end(struct scan_text *text, struct buf *out);

/* Appends the text with its halves of surrogate pairs spelled as escapes, if that is JSON.
 * JSON.parse accepts raw halves, but UTF-8 cannot hold them. Returns false, and appends
 * nothing, if the text holds no half, is not JSON for another reason, or would take more
 * than a few milliseconds: more than 4 MiB, or 50,000 halves. */
bool scan_spell_halves(struct slice text, struct buf *out);

/* Returns true if the raw key (without quotes) spells name. */
bool scan_key_is(struct slice raw_key, struct slice name);

/* Returns the nearest double; infinite if the number is too large. The decimal point is a
 * point in every locale of the process. Returns false for another type. */
bool scan_number(struct slice value, double *number);

/* Compares JSON values, regardless of white space, order of members and spelling. Numbers
 * are compared as doubles. Values that differ SCAN_EQUAL_DEPTH levels down are not compared
 * further, and count as different. */
enum { SCAN_EQUAL_DEPTH = 1000 };
bool scan_equal(struct slice a, struct slice b);

/* The same with a budget: *left is roughly how many nanoseconds it may take, and afterwards
 * how many remain. 0: the budget was too small or the values are too deep, and the result
 * is meaningless. */
bool scan_equal_within(struct slice a, struct slice b, uint64_t *left);

/* Returns true if the value is nested deeper than max. Bodies for trees may be 64 deep. */
bool scan_deeper_than(struct slice value, unsigned max);

/* Returns true if all objects in the value together have more than max members. */
bool scan_has_more_members(struct slice value, size_t max);

/* Returns false if the object has more members than most. Other types have none. */
bool scan_has_at_most(struct slice object, size_t most);

/* Returns true if the object names a member twice. That is rejected in envelopes, never in
 * payloads. It sorts the members, so first check that there are not too many. */
bool scan_has_duplicate(struct slice object);
