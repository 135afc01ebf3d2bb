/* limit_settings.c - writes the settings of a limit as JSON, and reads them. */
#include "api/queues/limit_settings.h"

#include "api/queues/rate_settings.h"
#include "base/json/members.h"
#include "base/json/scan.h"

/* ---- writing ---- */

static void write_own(struct buf *out, const struct queue_settings *settings)
{
    buf_print(out, "{\"paused\":%s", settings->paused ? "true" : "false");
    if (settings->overridden)
        buf_print(out, ",\"override\":%u,\"overriddenAt\":%lld", settings->override,
                  (long long)settings->overridden_at);
    if (settings->total_overridden)
        buf_print(out, ",\"total\":%u,\"totalAt\":%lld", settings->total_override,
                  (long long)settings->total_overridden_at);
    rate_settings_write(out, settings);
}

static void write_key(struct buf *out, const struct limit_override *override, bool *first)
{
    if (override->per_key == UINT32_MAX)
        return;
    buf_add_text(out, *first ? ",\"keys\":[{\"key\":" : ",{\"key\":");
    buf_add_json(out, override->key);
    buf_print(out, ",\"perKey\":%u,\"until\":%lld}", override->per_key,
              (long long) override->until);
    *first = false;
}

struct bytes *limit_settings_write(const struct queues *queues, struct slice limit,
                                   const struct queue_settings *settings,
                                   const struct limit_override *changed)
{
    struct buf out = { 0 };
    struct limit_override override;
    size_t at = 0;
    bool first = true;
    write_own(&out, settings);
    if (changed->key.ptr)
        write_key(&out, changed, &first);
    while (limits_next_override(queues, limit, &at, &override))
        if (!changed->key.ptr || !slice_equal(changed->key, override.key))
            write_key(&out, &override, &first);
    if (!first)
        buf_add_char(&out, ']');
    buf_add_char(&out, '}');
    bool is_needed = settings->paused || settings->overridden ||
                     settings->total_overridden || rate_settings_has(settings) || !first;
    struct bytes *body = is_needed ? buf_to_bytes(&out) : NULL;
    buf_finish(&out);
    return body;
}

/* ---- reading ---- */

static bool read_limit(struct slice object, const char *member, const char *time,
                       bool *is_set, uint32_t *limit, int64_t *at)
{
    struct slice text = scan_member(object, member);
    uint64_t number = 0;
    if (!text.ptr)
        return true;
    *is_set = true;
    bool is_right = !text_to_u64(text, &number) && number < UINT32_MAX;
    *limit = (uint32_t)number;
    return is_right && members_number(object, time, at);
}

static bool restore_key(struct environment *env, struct slice limit, struct slice object)
{
    struct limit_override override = { .per_key = UINT32_MAX };
    struct buf key = { 0 };
    bool is_set = false;
    bool is_right =
        scan_string(scan_member(object, "key"), &key) &&
        read_limit(object, "perKey", "until", &is_set, &override.per_key, &override.until);
    override.key = buf_slice(&key);
    if (is_right && override.until > loop_wall_ms(env->loop))
        limits_override_key(&env->queues, limit, &override);
    buf_finish(&key);
    return is_right;
}

enum err limit_settings_restore(struct environment *env, const struct document *document,
                                struct failure *why)
{
    struct slice body = bytes_slice(document->body), name = bytes_slice(document->name);
    struct queue_settings read = { .version = document->version };
    struct slice element;
    bool is_right = scan_is_json(body) && scan_type(body) == SCAN_OBJECT;
    read.paused = is_right && members_is_true(body, "paused");
    is_right = is_right &&
               read_limit(body, "override", "overriddenAt", &read.overridden,
                          &read.override, &read.overridden_at) &&
               read_limit(body, "total", "totalAt", &read.total_overridden,
                          &read.total_override, &read.total_overridden_at) &&
               rate_settings_read(body, &read);
    struct scan_members keys = scan_members(scan_member(body, "keys"));
    while (is_right && scan_next_element(&keys, &element))
        is_right = restore_key(env, name, element);
    if (!is_right)
        return explain(why, ERR_INVALID, "The document of a concurrency limit is damaged");
    limits_configure(&env->queues, name, &read);
    return OK;
}
