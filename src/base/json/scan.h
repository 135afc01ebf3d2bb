/* scan.h - JSON without a tree.
 *
 * A validating scanner that can stop after any byte, and readers that walk text already
 * known to be valid and yield spans of it. Values keep their bytes: 12345678901234567890,
 * 1e400, -0, "\u0000" and "\ud83d" come out as they went in.
 *
 * The scanner accepts the UTF-8 that JSON.parse accepts. An escape may name half of a
 * surrogate pair alone. A reader decodes such a half to the three bytes of its code point
 * (WTF-8), and two escapes that are a pair to the four bytes of their character, so that two
 * spellings of a string decode to the same bytes. Raw bytes of a half are not UTF-8 and are
 * refused. (RFC 8259, https://simonsapin.github.io/wtf-8) */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/slice.h"

enum {
    SCAN_NEAR_WORDS = 4, /* for the first 256 levels; further ones are allocated */
    SCAN_FAR_MAX =
        1024 * 1024, /* bytes of further levels that one scan allocates at most */
    SCAN_DEPTH_MAX = SCAN_NEAR_WORDS * 64 + SCAN_FAR_MAX * 8,
    SCAN_ESCAPE_MAX = 12, /* bytes: two surrogates */
};

/* The resumable validator: feed pieces, then finish. One value, white space around it.
 *
 * A level of nesting costs one bit: is it an object? Valid JSON has at least two bytes for each
 * level, so these bits are at most a sixteenth of it, and SCAN_FAR_MAX is reached only by a
 * text of more than 16 MiB. */
struct scan {
    uint8_t state;
    uint8_t pending;   /* bytes of a UTF-8 sequence or hex digits left */
    uint8_t low, high; /* bounds of the next UTF-8 byte */
    bool in_key;       /* the string being read is a member's name */
    bool too_deep;     /* what was refused is one level too many */
    const char *word;  /* rest of true, false, null */
    size_t depth;
    uint64_t near[SCAN_NEAR_WORDS]; /* one bit a level: is it an object? */
    uint64_t *far;                  /* of further levels; owned; NULL until there is one */
    size_t far_words;
    size_t offset; /* bytes accepted: where an error is */
};

void scan_init(struct scan *scan);
enum err scan_feed(struct scan *scan, struct slice piece);

/* Frees what the scan holds. ERR_INVALID when the value is not complete. A scan that is given up
 * before its end is finished, too; finishing it again returns the same. */
enum err scan_finish(struct scan *scan);

/* ERR_INVALID, and where and why a piece was refused. */
enum err scan_explain(const struct scan *scan, struct failure *why);

/* All at once. */
bool scan_is_json(struct slice text);

/* The same, found once and noted there. Loop thread only, or whoever has made the bytes and
 * not handed them over yet; NULL is none. */
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

/* By its first character; white space before it is allowed. Absent or empty: SCAN_NONE. */
enum scan_type scan_type(struct slice value);

struct scan_members {
    struct slice rest;
};

/* The members of an object, or elements of an array, in order. */
struct scan_members scan_members(struct slice container);

/* key is the raw string without its quotes, escapes undecoded; value is trimmed. */
bool scan_next_member(struct scan_members *members, struct slice *key, struct slice *value);
bool scan_next_element(struct scan_members *members, struct slice *value);

/* The raw value of a member, the last one if the name repeats (as JSON.parse does); absent
 * when there is none. Escaped spellings of the name count. */
struct slice scan_member(struct slice object, const char *name);

/* A JSON string without its quotes, escapes undecoded; absent for another type. */
struct slice scan_unquoted(struct slice value);

/* Decodes a JSON string (with its quotes) and appends it. False for another type. \u0000
 * becomes a zero byte. */
bool scan_string(struct slice value, struct buf *out);

/* The same of what is between the quotes. */
void scan_unescape(struct slice raw, struct buf *out);

/* The same when that comes in pieces. The zero value begins; after the end of the string it is
 * zero again. The end adds a half of a pair whose other half did not come. */
struct scan_text {
    char escape[SCAN_ESCAPE_MAX]; /* that has not come whole */
    uint8_t len;
};

void scan_text_feed(struct scan_text *text, struct slice raw, struct buf *out);
void scan_text_end(struct scan_text *text, struct buf *out);

/* Returns true when a decoded text is JSON as soon as the halves of surrogate pairs that it holds
 * are spelled as escapes, and appends it so: JSON.parse accepts them as they are, UTF-8 cannot
 * hold them. Returns false when the text holds no half, or is not JSON for another reason, or
 * would take more than a few milliseconds: more than 4 MiB, or 50,000 halves. */
bool scan_spell_halves(struct slice text, struct buf *out);

/* True when the raw key (without quotes) spells name. */
bool scan_key_is(struct slice raw_key, struct slice name);

/* The nearest double; infinite when it is too large for one. The point is a point in every
 * locale of the process. False for another type. */
bool scan_number(struct slice value, double *number);

/* Equal as JSON values: white space, order of members, spelling of strings and numbers
 * (compared as doubles) do not count. Values that differ in something SCAN_EQUAL_DEPTH levels
 * down are not compared further, and count as different. */
enum { SCAN_EQUAL_DEPTH = 1000 };
bool scan_equal(struct slice a, struct slice b);

/* The same within a time: left is about the nanoseconds that it may take, and what is left
 * of them afterwards. 0: it was not enough, or the values are too deep, and the answer means
 * nothing. */
bool scan_equal_within(struct slice a, struct slice b, uint64_t *left);

/* True when the value is nested deeper than max. Bodies that become trees may be 64 deep. */
bool scan_deeper_than(struct slice value, unsigned max);

/* True when all objects in the value, at whatever depth, have together more members than max. */
bool scan_has_more_members(struct slice value, size_t max);

/* False as soon as an object has more members than that. What is not an object has none. */
bool scan_has_at_most(struct slice object, size_t most);

/* True when the object names a member twice, which is refused in envelopes, never in payloads.
 * The members are sorted for that: first see that they are not too many. */
bool scan_has_duplicate(struct slice object);
