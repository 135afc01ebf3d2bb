/* waitpoint_make.c - creates a token or time, or finds it by its idempotency key.
 *
 *   body ─► waitpoint ─► document (+ the claim of its key) ─► done: the new one
 *                              └─ taken ─► the key's owner ─► done: the old one
 *
 * Without a key, the request id is claimed: if the response was lost, a retry gets the same
 * token. */
#include "api/waitpoints/waitpoint_make.h"

#include "api/triggers/trigger_options.h"
#include "base/text.h"

enum { REQUEST_KEY_MS = 24 * 3600 * 1000 };

void waitpoint_make_init(struct waitpoint_make *make, struct api_call *call,
                         void (*done)(struct waitpoint_make *make, enum err status))
{
    *make = (struct waitpoint_make){ .call = call, .done = done };
    make->made = &make->waitpoint;
    struct engine *engine = api_engine(call->api);
    make->waitpoint.created_at = loop_wall_ms(engine_loop(engine));
    engine_make_id(engine, "waitpoint", make->waitpoint.created_at, make->waitpoint.id);
}

void waitpoint_make_finish(struct waitpoint_make *make)
{
    waitpoint_finish(&make->waitpoint);
    waitpoint_finish(&make->old.waitpoint);
    bytes_clear(&make->claim.key);
}

/* Sets the claim. Takes ownership of key. */
static void claim(struct waitpoint_make *make, enum claim_kind kind, struct bytes *key,
                  int64_t expires_at)
{
    make->claim = (struct claim){
        .kind = kind,
        .env = make->call->env->number,
        .key = key,
        .expires_at = expires_at,
    };
    memcpy(make->claim.owner, make->waitpoint.id, sizeof(make->waitpoint.id));
    make->write.claim = &make->claim;
}

static void on_written(struct document_write *write, enum err status);

static void write_it(struct waitpoint_make *make)
{
    struct api_call *call = make->call;
    make->change = waitpoint_change(&make->waitpoint, call->env->number);
    documents_write_begin(api_engine(call->api), &make->change, 1, &make->write,
                          on_written);
}

/* The token may be gone before its key: then the key passes to the new one. */
static void on_old(struct waitpoint_load *load, enum err status)
{
    struct waitpoint_make *make = container_of(load, struct waitpoint_make, old);
    if (status == ERR_NOT_FOUND) {
        memcpy(make->claim.instead_of, make->claim.owner, sizeof(make->claim.owner));
        memcpy(make->claim.owner, make->waitpoint.id, sizeof(make->waitpoint.id));
        write_it(make);
        return;
    }
    make->made = &load->waitpoint;
    make->cached = make->claim.kind == CLAIM_WAITPOINT;
    make->done(make, status);
}

static void on_written(struct document_write *write, enum err status)
{
    struct waitpoint_make *make = container_of(write, struct waitpoint_make, write);
    if (status && make->claim.taken)
        waitpoint_load_begin(&make->old, make->call, slice_of(make->claim.owner), on_old);
    else
        make->done(make, status);
}

void waitpoint_make_begin(struct waitpoint_make *make, struct slice space)
{
    const struct waitpoint *waitpoint = &make->waitpoint;
    if (waitpoint->key)
        claim(make, CLAIM_WAITPOINT,
              idempotency_claim_key(space, bytes_slice(waitpoint->key)),
              waitpoint->key_expires_at);
    else if (api_request_id(make->call).ptr)
        claim(make, CLAIM_REQUEST,
              api_request_claim(make->call, SLICE(CLAIM_NO_TASK "waitpoint")),
              waitpoint->created_at + REQUEST_KEY_MS);
    write_it(make);
}

/* ---- the bodies ---- */

static enum err read_text(struct api_call *call, const json_t *body, const char *name,
                          struct slice *text)
{
    const json_t *value = json_object_get(body, name);
    *text = (struct slice){ json_string_value(value), json_string_length(value) };
    if (value && !json_is_null(value) && !text->ptr)
        return explain(&call->why, ERR_INVALID, "%s: must be a string", name);
    return OK;
}

static enum err read_key(struct waitpoint_make *make, const json_t *body)
{
    struct api_call *call = make->call;
    struct slice key, ttl;
    int64_t life_ms;
    if (read_text(call, body, "idempotencyKey", &key) ||
        read_text(call, body, "idempotencyKeyTTL", &ttl))
        return ERR_INVALID;
    if (text_utf16_length(key) > TRIGGER_KEY_MAX)
        return explain(&call->why, ERR_INVALID,
                       "idempotencyKey: must have at most %d characters", TRIGGER_KEY_MAX);
    if (trigger_key_ttl_ms(ttl, &life_ms))
        return explain(&call->why, ERR_INVALID,
                       "idempotencyKeyTTL: must be a duration like \"1h30m\"");
    if (key.len) {
        make->waitpoint.key = bytes_create(key);
        make->waitpoint.key_expires_at = make->waitpoint.created_at + life_ms;
    }
    return OK;
}

/* Returns the time at which the token times out: a past time means at once; the last
 * valid date is the maximum. */
static int64_t until_of(double number)
{
    int64_t unix_ms;
    return text_number_to_time(number, &unix_ms) ? text_time_max_ms : unix_ms;
}

/* Reads a duration, a date, or milliseconds since 1970 (like JavaScript's Date). */
static enum err read_timeout(struct waitpoint_make *make, const json_t *body)
{
    struct api_call *call = make->call;
    const json_t *number = json_object_get(body, "timeout");
    struct slice text;
    if (json_is_number(number) && trigger_number_is_no_time(json_number_value(number)))
        return explain(
            &call->why, ERR_INVALID,
            "timeout: %.0f as a number is a date in milliseconds since 1970; for "
            "a duration send text like \"60s\"",
            json_number_value(number));
    if (json_is_number(number)) {
        make->waitpoint.until = until_of(json_number_value(number));
        return OK;
    }
    if (read_text(call, body, "timeout", &text))
        return ERR_INVALID;
    if (!text.ptr)
        return OK;
    if (text_to_moment(text, make->waitpoint.created_at, &make->waitpoint.until))
        return explain(&call->why, ERR_INVALID,
                       "timeout: must be a duration like \"1h30m\" or an ISO 8601 date");
    return OK;
}

static enum err read_tags(struct waitpoint_make *make, const json_t *body)
{
    const json_t *value = json_object_get(body, "tags");
    struct slice tags[RUN_TAGS_MAX];
    size_t count = json_is_string(value) ? 1 : json_array_size(value), kept = 0;
    bool fine = !value || json_is_string(value) || json_is_array(value);
    if (count > RUN_TAGS_MAX)
        return explain(&make->call->why, ERR_INVALID, "tags: at most %d", RUN_TAGS_MAX);
    for (size_t i = 0; i < count && fine; i++) {
        const json_t *tag = json_is_string(value) ? value : json_array_get(value, i);
        struct slice text = { json_string_value(tag), json_string_length(tag) };
        fine = text.ptr && text_utf16_length(text) <= RUN_TAG_CHARS_MAX;
        if (slice_trim(text).len)
            tags[kept++] = text;
    }
    if (!fine)
        return explain(&make->call->why, ERR_INVALID,
                       "tags: must be a string or an array of strings of at most %d "
                       "characters",
                       RUN_TAG_CHARS_MAX);
    make->waitpoint.tags = tag_list_create(tags, kept);
    return OK;
}

/* Reads a date as text or in milliseconds since 1970. */
static enum err read_date(struct waitpoint_make *make, const json_t *body)
{
    const json_t *date = json_object_get(body, "date");
    make->waitpoint.is_time = true;
    if (json_is_integer(date) && json_integer_value(date) > 0) {
        make->waitpoint.until = json_integer_value(date);
        return OK;
    }
    if (json_is_string(date) &&
        !text_to_time(slice_of(json_string_value(date)), &make->waitpoint.until))
        return OK;
    return explain(&make->call->why, ERR_INVALID,
                   "date: must be an ISO 8601 date like 2024-01-31T09:00:00.000Z");
}

enum err waitpoint_make_read_token(struct waitpoint_make *make, const json_t *body)
{
    if (read_key(make, body) || read_timeout(make, body))
        return ERR_INVALID;
    return read_tags(make, body);
}

enum err waitpoint_make_read_time(struct waitpoint_make *make, const json_t *body)
{
    return read_key(make, body) ? ERR_INVALID : read_date(make, body);
}
