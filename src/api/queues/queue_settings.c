/* queue_settings.c - writes the settings of a queue as JSON, and reads them. */
#include "api/queues/queue_settings.h"

#include "api/queues/rate_settings.h"
#include "base/json/members.h"
#include "base/json/scan.h"

struct bytes *queue_settings_write(const struct queue_settings *settings)
{
    struct buf out = { 0 };
    if (!settings->paused && !settings->overridden && !settings->singleton &&
        !rate_settings_has(settings))
        return NULL;
    buf_print(&out, "{\"paused\":%s", settings->paused ? "true" : "false");
    if (settings->overridden)
        buf_print(&out, ",\"override\":%u,\"overriddenAt\":%lld", settings->override,
                  (long long)settings->overridden_at);
    if (settings->singleton)
        buf_print(&out, ",\"singleton\":\"%s\"", singleton_word(settings->singleton));
    rate_settings_write(&out, settings);
    buf_add_char(&out, '}');
    struct bytes *body = buf_to_bytes(&out);
    buf_finish(&out);
    return body;
}

enum err queue_settings_read(struct slice body, struct queue_settings *settings,
                             struct failure *why)
{
    struct queue_settings read = { 0 };
    uint64_t limit = 0;

    if (!scan_is_json(body) || scan_type(body) != SCAN_OBJECT ||
        !rate_settings_read(body, &read))
        return explain(why, ERR_INVALID, "A queue's document is damaged");
    read.paused = members_is_true(body, "paused");
    struct slice text = scan_member(body, "override");
    if (text.ptr) {
        read.overridden = true;
        if (text_to_u64(text, &limit) || limit > UINT32_MAX ||
            !members_number(body, "overriddenAt", &read.overridden_at))
            return explain(why, ERR_INVALID, "A queue's document is damaged");
        read.override = (uint32_t)limit;
    }
    struct bytes *word = members_text(body, "singleton");
    read.singleton = singleton_of_word(bytes_slice(word));
    bytes_unref(word);
    *settings = read;
    return OK;
}
