/* envelope.h - one JSON object as it arrives: is it valid, and where are its members?
 *
 *   piece ─► scan (is it JSON) ─► text ─► where members begin and end ─► payload decoded
 *
 * A trigger may have 3 MiB. Everything that looks at each of its bytes is done for one
 * piece at a time, while it arrives, so nothing is left to do when the last has come: no
 * turn is longer than a piece of 64 KiB takes. For bodies of triggers and lines of
 * batches; what is inside of the members is not looked at. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/json/ignored.h"
#include "base/json/scan.h"

enum { ENVELOPE_MEMBERS_MAX = 32 };

struct envelope_member {
    size_t key, key_len; /* in text, without quotes */
    size_t value, value_len;
};

struct envelope {
    struct scan scan;
    struct buf text;
    struct envelope_member members[ENVELOPE_MEMBERS_MAX];
    size_t count;
    bool too_many, repeats; /* members; one name */

    /* The payload, if it is a string: the text it stands for. */
    struct buf payload;
    struct scan payload_scan;
    struct scan_text payload_text;
    bool has_payload_text;
    bool payload_is_json; /* known when the envelope is closed */

    /* Where reading is. */
    struct envelope_member member;
    size_t depth;
    bool in_string, after_backslash, in_key, key_done, decoding;
};

/* A zeroed envelope is ready; after use it is again. Keeps the memory. */
void envelope_clear(struct envelope *envelope);
void envelope_finish(struct envelope *envelope);

/* ERR_INVALID: no longer the beginning of JSON; the object is then of no use. */
enum err envelope_feed(struct envelope *envelope, struct slice piece);

/* All has come. ERR_INVALID with a sentence for the client. */
enum err envelope_close(struct envelope *envelope, struct failure *why);

/* The raw value; absent when there is none. */
struct slice envelope_get(const struct envelope *envelope, const char *name);

/* Notes the members that are not among the known ones, whose list NULL ends, as ignored (NULL:
 * nobody listens). Returns how many there are, and the raw key of the first one. */
size_t envelope_tell_others(const struct envelope *envelope, const char *where,
                            const char *const *known, struct ignored *ignored,
                            struct slice *first);

/* The payload's text when it is a JSON string, else absent. */
struct slice envelope_payload_text(const struct envelope *envelope);

/* That text is JSON itself. The envelope is closed. */
bool envelope_payload_is_json(const struct envelope *envelope);
