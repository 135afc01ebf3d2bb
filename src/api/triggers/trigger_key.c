/* trigger_key.c - idempotency keys of triggers: their text, lifetime and shown form. */
#include "api/triggers/trigger_reading.h"
#include "base/json/scan.h"

static const int64_t day_ms = 24 * 3600 * INT64_C(1000);

enum err trigger_key_ttl_ms(struct slice ttl, int64_t *ms)
{
    int64_t given = 30 * day_ms;
    if (ttl.len && text_to_duration_ms(ttl, &given))
        return ERR_INVALID;
    *ms = given < 36500 * day_ms ? given : 36500 * day_ms;
    return OK;
}

enum err trigger_key_options_read(struct slice value, struct bytes **shown,
                                  struct failure *why)
{
    struct buf key = { 0 }, scope = { 0 };
    enum err err = OK;
    if (!value.ptr)
        return OK;
    if (!scan_string(scan_member(value, "key"), &key) ||
        !scan_string(scan_member(value, "scope"), &scope) ||
        (!slice_is(buf_slice(&scope), "run") && !slice_is(buf_slice(&scope), "attempt") &&
         !slice_is(buf_slice(&scope), "global")))
        err = explain(why, ERR_INVALID,
                      "Validation error: Expected {key: string, scope: run, attempt or "
                      "global} at \"options.idempotencyKeyOptions\"");
    else
        *shown = bytes_create(buf_slice(&key));
    buf_finish(&key);
    buf_finish(&scope);
    return err;
}

static enum err check_key_length(struct trigger_reading *r, struct slice key)
{
    if (text_utf16_length(key) <= TRIGGER_KEY_MAX)
        return OK;
    return explain(r->why, ERR_INVALID,
                   "Validation error: idempotencyKey must be %d characters or less",
                   TRIGGER_KEY_MAX);
}

static enum err take_life(struct trigger_reading *r)
{
    struct slice ttl = r->source->key_ttl;
    bool is_header = ttl.len > 0;
    int64_t life_ms;
    enum err err = OK;

    r->name = "idempotencyKeyTTL";
    if (!is_header && r->key_ttl.ptr)
        err = reading_text(r, r->key_ttl, SIZE_MAX, &ttl);
    if (err)
        return err;
    if (trigger_key_ttl_ms(ttl, &life_ms))
        return explain(r->why, ERR_INVALID, "%s '%.*s' is not a duration like 1h30m%s",
                       is_header ? "Headers Error: idempotency-key-ttl"
                                 : "Validation error: idempotencyKeyTTL",
                       SLICE_ARG(text_clip(ttl)),
                       is_header ? "" : " at \"options.idempotencyKeyTTL\"");
    r->item->key_expires_at = r->place->now_ms + life_ms;
    return OK;
}

static const char *const key_options_members[] = { "key", "scope", NULL };

enum err reading_take_key(struct trigger_reading *r)
{
    struct run *run = &r->item->run;
    struct bytes *shown = NULL;
    struct slice key = r->source->key;
    struct buf key_text = { 0 };
    enum err err = OK;

    if (r->key.ptr && !scan_string(r->key, &key_text))
        return explain(r->why, ERR_INVALID,
                       "Validation error: Expected string at \"options.idempotencyKey\"");
    if (!key.len)
        key = buf_slice(&key_text);
    if ((err = check_key_length(r, key)) == OK)
        err = trigger_key_options_read(r->key_options, &shown, r->why);
    reading_report_others(r, "idempotencyKeyOptions.", r->key_options, key_options_members);
    if (!err)
        err = take_life(r);
    if (!err && key.len) {
        struct run_rare *rare = run_rare_edit(run);
        rare->idempotency_key = bytes_create(key);
        rare->idempotency_shown = bytes_ref(shown ? shown : rare->idempotency_key);
        run->key_from_user = shown != NULL;
    }
    bytes_unref(shown);
    buf_finish(&key_text);
    return err;
}
