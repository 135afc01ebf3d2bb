/* envelope.c - follows strings and brackets, and notes the members at depth one.
 *
 * The scanner has accepted each piece before it is followed here, so quotes, colons and
 * commas are where JSON has them, and malformed text need not be handled. */
#include "base/json/envelope.h"

void envelope_clear(struct envelope *envelope)
{
    struct buf text = envelope->text, payload = envelope->payload;
    scan_finish(&envelope->scan);
    scan_finish(&envelope->payload_scan);
    buf_clear(&text);
    buf_clear(&payload);
    *envelope = (struct envelope){ .text = text, .payload = payload };
    scan_init(&envelope->scan);
    scan_init(&envelope->payload_scan);
}

void envelope_finish(struct envelope *envelope)
{
    scan_finish(&envelope->scan);
    scan_finish(&envelope->payload_scan);
    buf_finish(&envelope->text);
    buf_finish(&envelope->payload);
}

static struct slice part(const struct envelope *envelope, size_t at, size_t len)
{
    return (struct slice){ envelope->text.ptr + at, len };
}

static struct slice key_of(const struct envelope *envelope,
                           const struct envelope_member *member)
{
    return part(envelope, member->key, member->key_len);
}

/* ---- the payload's text ---- */

/* Decodes a part of the payload's string; raw has no quotes. */
static void decode(struct envelope *envelope, struct slice raw, bool is_last)
{
    size_t before = envelope->payload.len;
    scan_text_feed(&envelope->payload_text, raw, &envelope->payload);
    if (is_last)
        scan_text_end(&envelope->payload_text, &envelope->payload);
    scan_feed(&envelope->payload_scan, slice_from(buf_slice(&envelope->payload), before));
}

/* ---- members ---- */

static bool same_key(struct slice a, struct slice b)
{
    return slice_equal(a, b) || scan_key_is(a, b) || scan_key_is(b, a);
}

static void note_member(struct envelope *envelope, size_t end)
{
    struct envelope_member *member = &envelope->member;
    struct slice value = slice_trim(part(envelope, member->value, end - member->value));
    member->value = (size_t)(value.ptr - envelope->text.ptr);
    member->value_len = value.len;
    envelope->key_done = false;
    envelope->decoding = false;
    for (size_t i = 0; i < envelope->count; i++)
        if (same_key(key_of(envelope, &envelope->members[i]), key_of(envelope, member)))
            envelope->repeats = true;
    if (envelope->count == ENVELOPE_MEMBERS_MAX)
        envelope->too_many = true;
    else
        envelope->members[envelope->count++] = *member;
}

static void begin_string(struct envelope *envelope, size_t at)
{
    envelope->in_string = true;
    if (envelope->depth != 1)
        return;
    if (!envelope->key_done) {
        envelope->in_key = true;
        envelope->member.key = at + 1;
        return;
    }
    if (envelope->has_payload_text ||
        !scan_key_is(key_of(envelope, &envelope->member), SLICE("payload")))
        return;
    envelope->decoding = envelope->has_payload_text = true;
}

static void end_string(struct envelope *envelope, size_t at)
{
    envelope->in_string = false;
    if (!envelope->in_key)
        return;
    envelope->in_key = false;
    envelope->member.key_len = at - envelope->member.key;
}

/* Follows a string up to its end, or to the end of the text that has arrived. Returns where
 * it stopped. */
static size_t follow_string(struct envelope *envelope, size_t at)
{
    const char *text = envelope->text.ptr;
    size_t from = at, end = envelope->text.len;
    bool after_backslash = envelope->after_backslash;

    for (; at < end; at++) {
        if (after_backslash)
            after_backslash = false;
        else if (text[at] == '\\')
            after_backslash = true;
        else if (text[at] == '"')
            break;
    }
    envelope->after_backslash = after_backslash;
    if (envelope->decoding)
        decode(envelope, part(envelope, from, at - from), at < end);
    if (at == end)
        return at;
    end_string(envelope, at);
    return at + 1;
}

static void follow_structure(struct envelope *envelope, size_t at)
{
    switch (envelope->text.ptr[at]) {
    case '"': begin_string(envelope, at); break;
    case '{':
    case '[': envelope->depth++; break;
    case '}':
    case ']':
        if (--envelope->depth == 0 && envelope->key_done)
            note_member(envelope, at);
        break;
    case ':':
        if (envelope->depth == 1) {
            envelope->key_done = true;
            envelope->member.value = at + 1;
        }
        break;
    case ',':
        if (envelope->depth == 1 && envelope->key_done)
            note_member(envelope, at);
        break;
    default: break;
    }
}

enum err envelope_feed(struct envelope *envelope, struct slice piece)
{
    size_t at = envelope->text.len;
    enum err err = scan_feed(&envelope->scan, piece);
    if (err)
        return err;
    buf_add(&envelope->text, piece);
    while (at < envelope->text.len) {
        if (envelope->in_string)
            at = follow_string(envelope, at);
        else
            follow_structure(envelope, at++);
    }
    return OK;
}

enum err envelope_close(struct envelope *envelope, struct failure *why)
{
    envelope->payload_is_json =
        envelope->has_payload_text && !scan_finish(&envelope->payload_scan);
    if (!slice_trim(buf_slice(&envelope->text)).len)
        return explain(why, ERR_INVALID, "Request body is empty");
    if (scan_finish(&envelope->scan))
        return explain(why, ERR_INVALID, "Invalid JSON: it ends too early");
    if (scan_type(buf_slice(&envelope->text)) != SCAN_OBJECT)
        return explain(why, ERR_INVALID, "Validation error: it must be a JSON object");
    if (envelope->repeats)
        return explain(why, ERR_INVALID, "Validation error: it names a member twice");
    if (envelope->too_many)
        return explain(why, ERR_INVALID, "Validation error: it has more than %d members",
                       ENVELOPE_MEMBERS_MAX);
    return OK;
}

struct slice envelope_get(const struct envelope *envelope, const char *name)
{
    for (size_t i = 0; i < envelope->count; i++) {
        const struct envelope_member *member = &envelope->members[i];
        if (scan_key_is(key_of(envelope, member), slice_of(name)))
            return part(envelope, member->value, member->value_len);
    }
    return (struct slice){ 0 };
}

static bool is_among(struct slice key, const char *const *names)
{
    for (; *names; names++)
        if (scan_key_is(key, slice_of(*names)))
            return true;
    return false;
}

size_t envelope_report_others(const struct envelope *envelope, const char *where,
                              const char *const *known, struct ignored *ignored,
                              struct slice *first)
{
    size_t count = 0;
    for (size_t i = 0; i < envelope->count; i++) {
        struct slice key = key_of(envelope, &envelope->members[i]);
        if (is_among(key, known))
            continue;
        if (!count++ && first)
            *first = key;
        ignored_add_member(ignored, where, key);
    }
    return count;
}

struct slice envelope_payload_text(const struct envelope *envelope)
{
    return envelope->has_payload_text ? buf_slice(&envelope->payload) : (struct slice){ 0 };
}

bool envelope_payload_is_json(const struct envelope *envelope)
{
    return envelope->payload_is_json;
}
