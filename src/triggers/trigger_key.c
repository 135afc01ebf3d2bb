/* trigger_key.c - the idempotency key of a trigger: its text, its life, how it is shown. */
#include "triggers/trigger_reading.h"
#include "json/scan.h"

static const int64_t day_ms = 24 * 3600 * INT64_C(1000);

int64_t trigger_key_ttl_ms(struct slice ttl)
{
    static const struct {
        char unit;
        int64_t ms;
    } units[] = { { 's', 1000 }, { 'm', 60000 }, { 'h', 3600000 }, { 'd', 86400000 } };
    uint64_t count;

    if (ttl.len < 2 || text_to_u64((struct slice){ ttl.ptr, ttl.len - 1 }, &count))
        return 30 * day_ms;
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        uint64_t most = (uint64_t)(36500 * day_ms / units[i].ms);
        if (units[i].unit == ttl.ptr[ttl.len - 1])
            return (int64_t)(count < most ? count : most) * units[i].ms;
    }
    return 30 * day_ms;
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

static enum err check_key_length(struct reading *r, struct slice key)
{
    if (text_utf16_length(key) <= TRIGGER_KEY_MAX)
        return OK;
    return explain(r->why, ERR_INVALID,
                   "Validation error: idempotencyKey must be %d characters or less",
                   TRIGGER_KEY_MAX);
}

static const char *const key_options_members[] = { "key", "scope", NULL };

enum err reading_take_key(struct reading *r)
{
    struct run *run = &r->item->run;
    struct bytes *shown = NULL;
    struct slice key = r->source->key, ttl = r->source->key_ttl;
    struct buf key_text = { 0 };
    enum err err = OK;

    if (r->key.ptr && !scan_string(r->key, &key_text))
        return explain(r->why, ERR_INVALID,
                       "Validation error: Expected string at \"options.idempotencyKey\"");
    if (!key.len)
        key = buf_slice(&key_text);
    if ((err = check_key_length(r, key)) == OK)
        err = trigger_key_options_read(r->key_options, &shown, r->why);
    reading_tell_others(r, "idempotencyKeyOptions.", r->key_options, key_options_members);
    if (!err && !ttl.len && r->key_ttl.ptr) {
        r->name = "idempotencyKeyTTL";
        err = reading_text(r, r->key_ttl, SIZE_MAX, &ttl);
    }
    if (!err && key.len) {
        struct run_rare *rare = run_rare_edit(run);
        rare->idempotency_key = bytes_create(key);
        rare->idempotency_shown = bytes_ref(shown ? shown : rare->idempotency_key);
        run->key_from_user = shown != NULL;
        r->item->key_expires_at = r->place->now_ms + trigger_key_ttl_ms(ttl);
    }
    bytes_unref(shown);
    buf_finish(&key_text);
    return err;
}
