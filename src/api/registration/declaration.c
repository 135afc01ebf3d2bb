/* declaration.c - follows the strings and brackets of a body, and copies the members in
 * use.
 *
 *   depth  1  the body        only metadata is followed
 *          2  the metadata    only the parts
 *          3  a list          each of its elements
 *          4  a task, queue   only the members that are used, whole
 *
 * The scanner has accepted a piece before it is followed here, so quotes, colons and commas
 * are where JSON has them. */
#include "api/registration/declaration.h"

static const char schema_name[] = "payloadSchema";

/* The members of a task, queue or limit that are used. */
static const char *const used[] = {
    "id",         "filePath",      "exportName",  "queue",
    "retry",      "schedule",      "ttl",         "maxDuration",
    "machine",    "name",          "concurrency", "combinedConcurrencyLimit",
    "gates",      "triggerSource", "agentConfig", "concurrencyLimit",
    "endpointId", "perKey",        "total",       schema_name,
};

static const char *const parts[DECLARED_PARTS] = {
    [DECLARED_HASH] = "contentHash",
    [DECLARED_SDK] = "packageVersion",
    [DECLARED_CLI] = "cliPackageVersion",
    [DECLARED_TASKS] = "tasks",
    [DECLARED_QUEUES] = "queues",
    [DECLARED_LIMITS] = "concurrencyLimits",
    [DECLARED_PROMPTS] = "prompts",
    [DECLARED_WEBHOOKS] = "webhookEndpoints",
    [DECLARED_SUBSCRIBERS] = "webhookSubscribers",
};

void declaration_init(struct declaration *declaration, size_t most)
{
    *declaration = (struct declaration){ .most = most };
    scan_init(&declaration->scan);
}

void declaration_finish(struct declaration *declaration)
{
    scan_finish(&declaration->scan);
    for (size_t i = 0; i < DECLARED_PARTS; i++)
        buf_finish(&declaration->parts[i]);
}

const char *declaration_name(enum declaration_part part)
{
    return parts[part];
}

struct slice declaration_part(const struct declaration *declaration,
                              enum declaration_part part)
{
    return buf_slice(&declaration->parts[part]);
}

/* ---- copying ---- */

/* Returns the bytes of the element's schema that were copied so far. */
static size_t schema_len(const struct declaration *d)
{
    return d->in_schema ? d->out->len - d->schema_begin : d->schema;
}

static bool is_too_long(const struct declaration *d)
{
    return d->out && d->out->len - d->begin - schema_len(d) > d->most;
}

static void leave_schema_out(struct declaration *d)
{
    bool follows_comma = d->out->ptr[d->schema_begin - 1] == ',';
    d->out->len = d->schema_begin - (follows_comma ? 1 : 0);
    d->in_schema = false;
    d->skipping = 4;
}

static void put(struct declaration *d, struct slice text)
{
    if (!d->out || d->skipping || is_too_long(d))
        return;
    if (!d->in_schema || (schema_len(d) + text.len <= SCHEMA_MAX &&
                          d->schemas + schema_len(d) + text.len <= SCHEMAS_MAX)) {
        buf_add(d->out, text);
        return;
    }
    leave_schema_out(d);
}

static void put_char(struct declaration *d, char c)
{
    put(d, (struct slice){ &c, 1 });
}

/* Returns true in an object that has some members left out. */
static bool is_filtered(const struct declaration *d)
{
    return !d->skipping && (d->depth <= 2 || d->depth == 4) && d->is_object[d->depth];
}

/* ---- members ---- */

static bool key_is(const struct declaration *d, const char *name)
{
    return scan_key_is((struct slice){ d->key, d->key_len }, slice_of(name));
}

/* Begins the metadata. Earlier members of the same name do not count. Returns false for
 * other members. */
static bool choose_metadata(struct declaration *d)
{
    if (!key_is(d, "metadata"))
        return false;
    d->has_metadata = false;
    for (size_t i = 0; i < DECLARED_PARTS; i++)
        buf_clear(&d->parts[i]);
    return true;
}

static bool choose_part(struct declaration *d)
{
    d->begin = d->index = d->schema = 0;
    for (size_t i = 0; i < DECLARED_PARTS; i++) {
        if (!key_is(d, parts[i]))
            continue;
        d->out = &d->parts[i];
        buf_clear(d->out);
        return true;
    }
    return false;
}

static bool choose_used(struct declaration *d)
{
    for (size_t i = 0; i < sizeof(used) / sizeof(used[0]); i++) {
        if (!key_is(d, used[i]))
            continue;
        if (d->out && d->out->len && d->out->ptr[d->out->len - 1] != '{')
            put_char(d, ',');
        d->in_schema = used[i] == schema_name && d->out && !d->schema;
        d->schema_begin = d->out ? d->out->len : 0;
        put_char(d, '"');
        put(d, slice_of(used[i]));
        put_char(d, '"');
        return true;
    }
    return false;
}

static void end_key(struct declaration *d)
{
    bool keeps = d->depth == 1   ? choose_metadata(d)
                 : d->depth == 2 ? choose_part(d)
                                 : choose_used(d);
    d->in_key = d->wants_key = false;
    if (!keeps)
        d->skipping = d->depth;
}

static void end_member(struct declaration *d)
{
    if (d->depth == 4 && d->in_schema) {
        d->schema = schema_len(d);
        d->in_schema = false;
    }
    if (d->skipping == d->depth)
        d->skipping = 0;
    if (d->depth == 2)
        d->out = NULL;
}

/* ---- following ---- */

static void begin_string(struct declaration *d)
{
    d->in_string = true;
    d->in_key = d->wants_key && is_filtered(d);
    d->key_len = 0;
    if (!d->in_key)
        put_char(d, '"');
}

static void end_string(struct declaration *d)
{
    d->in_string = false;
    if (d->in_key)
        end_key(d);
    else
        put_char(d, '"');
}

static void add_key(struct declaration *d, struct slice text)
{
    size_t left = sizeof(d->key) - d->key_len, len = text.len < left ? text.len : left;
    memcpy(d->key + d->key_len, text.ptr, len);
    d->key_len += len;
}

/* Follows a string up to its closing quote, or to the end of the piece. Returns that
 * length. */
static size_t follow_string(struct declaration *d, struct slice rest)
{
    size_t len = 0;
    for (; len < rest.len; len++) {
        if (d->after_backslash)
            d->after_backslash = false;
        else if (rest.ptr[len] == '\\')
            d->after_backslash = true;
        else if (rest.ptr[len] == '"')
            break;
    }
    struct slice text = { rest.ptr, len };
    if (d->in_key)
        add_key(d, text);
    else
        put(d, text);
    return len;
}

static void begin_element(struct declaration *d)
{
    d->begin = d->out->len;
    d->schemas += d->schema;
    d->schema = 0;
}

static void begin_container(struct declaration *d, char c)
{
    d->depth++;
    d->wants_key = true;
    if (d->depth <= 4)
        d->is_object[d->depth] = c == '{';
    if (d->depth == 2 && !d->skipping)
        d->has_metadata = c == '{' && d->is_object[1];
    put_char(d, c);
    if (d->depth == 3 && d->out)
        begin_element(d);
}

static void end_container(struct declaration *d, char c)
{
    end_member(d);
    put_char(d, c);
    d->depth--;
}

static void take_comma(struct declaration *d)
{
    end_member(d);
    d->wants_key = true;
    if (is_filtered(d))
        return;
    put_char(d, ',');
    if (d->depth == 3 && d->out) {
        begin_element(d);
        d->index++;
    }
}

/* Takes a character outside of strings. */
static void take(struct declaration *d, char c)
{
    switch (c) {
    case ' ':
    case '\t':
    case '\r':
    case '\n': break;
    case '{':
    case '[': begin_container(d, c); break;
    case '}':
    case ']': end_container(d, c); break;
    case ',': take_comma(d); break;
    case '"': begin_string(d); break;
    case ':':
        if (d->depth != 2)
            put_char(d, c);
        break;
    default: put_char(d, c);
    }
}

static void follow(struct declaration *d, struct slice rest)
{
    while (rest.len && !is_too_long(d)) {
        size_t len = d->in_string ? follow_string(d, rest) : 0;
        rest = slice_from(rest, len);
        if (!rest.len)
            return;
        if (d->in_string)
            end_string(d);
        else
            take(d, rest.ptr[0]);
        rest = slice_from(rest, 1);
    }
}

static enum err refuse_length(const struct declaration *d, struct failure *why)
{
    const char *part = parts[d->out - d->parts];
    if (d->depth < 3)
        return explain(why, ERR_INVALID, "metadata.%s: takes more than %zu bytes", part,
                       d->most);
    return explain(why, ERR_INVALID,
                   "metadata.%s[%zu]: takes more than %zu bytes, schemas not counted", part,
                   d->index, d->most);
}

enum err declaration_feed(struct declaration *declaration, struct slice piece,
                          struct failure *why)
{
    if (scan_feed(&declaration->scan, piece))
        return scan_explain(&declaration->scan, why);
    follow(declaration, piece);
    return is_too_long(declaration) ? refuse_length(declaration, why) : OK;
}

enum err declaration_end(struct declaration *declaration, struct failure *why)
{
    if (!declaration->scan.offset)
        return explain(why, ERR_INVALID, "Request body is empty");
    if (scan_finish(&declaration->scan))
        return explain(why, ERR_INVALID, "Invalid JSON: the body ends too early");
    if (!declaration->is_object[1])
        return explain(why, ERR_INVALID,
                       "Validation error: the body must be a JSON object");
    if (!declaration->has_metadata)
        return explain(why, ERR_INVALID, "metadata: must be an object");
    return OK;
}
