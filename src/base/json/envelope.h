/* envelope.h - validates one JSON object and finds its members, as it arrives.
 *
 *   piece ─► scan (is it JSON?) ─► text ─► where members begin and end ─► payload decoded
 *
 * A trigger may have 3 MiB. All work that looks at every byte is done piece by piece on
 * arrival, so nothing is left to do after the last piece: no turn takes longer than a piece
 * of 64 KiB does. Used for the bodies of triggers and replays, and for each item of a
 * batch. The values of members are not examined. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/json/ignored.h"
#include "base/json/scan.h"

enum { ENVELOPE_MEMBERS_MAX = 32 };

struct envelope_member {
    size_t key, key_len; /* offset in text, without quotes */
    size_t value, value_len;
};

struct envelope {
    struct scan scan;
    struct buf text;
    struct envelope_member members[ENVELOPE_MEMBERS_MAX];
    size_t count;
    bool too_many, repeats; /* members; a name occurs twice */

    /* The text of the payload, if that is a string. */
    struct buf payload;
    struct scan payload_scan;
    struct scan_text payload_text;
    bool has_payload_text;
    bool payload_is_json; /* known once the envelope is closed */

    /* The state of reading. */
    struct envelope_member member;
    size_t depth;
    bool in_string, after_backslash, in_key, key_done, decoding;
};

/* Prepares the envelope for (another) use and keeps its memory. A zeroed one is ready. */
void envelope_clear(struct envelope *envelope);
void envelope_finish(struct envelope *envelope);

/* ERR_INVALID: the text cannot be the beginning of JSON; the envelope is then unusable. */
enum err envelope_feed(struct envelope *envelope, struct slice piece);

/* Call this after the last piece. ERR_INVALID, with a sentence for the client. */
enum err envelope_close(struct envelope *envelope, struct failure *why);

/* Returns the raw value of a member; absent if there is none. */
struct slice envelope_get(const struct envelope *envelope, const char *name);

/* Adds all members that are not among the known ones to ignored. known ends with NULL.
 * ignored NULL: they are only counted. Returns their number, and the raw key of the first
 * one if first is set. */
size_t envelope_report_others(const struct envelope *envelope, const char *where,
                              const char *const *known, struct ignored *ignored,
                              struct slice *first);

/* Returns the decoded payload if it is a JSON string, otherwise absent. */
struct slice envelope_payload_text(const struct envelope *envelope);

/* Returns true if that text is JSON itself. The envelope must be closed. */
bool envelope_payload_is_json(const struct envelope *envelope);
