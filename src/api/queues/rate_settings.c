/* rate_settings.c - reads and writes rates as JSON. */
#include "api/queues/rate_settings.h"

#include "base/json/members.h"
#include "base/json/scan.h"

enum { SECOND_MS = 1000 };

/* ---- requests ---- */

static bool read_period(struct slice value, uint32_t *period_ms)
{
    struct buf text = { 0 };
    int64_t ms = 0;
    bool is_right = scan_type(value) == SCAN_STRING && scan_string(value, &text) &&
                    !text_to_duration_ms(buf_slice(&text), &ms);
    buf_finish(&text);
    *period_ms = (uint32_t)ms;
    return is_right && ms >= RATE_PERIOD_MIN_MS && ms <= RATE_PERIOD_MAX_MS &&
           ms % SECOND_MS == 0;
}

static enum err read_rate(struct api_call *call, struct slice body, const char *member,
                          bool *is_set, struct rate *rate)
{
    struct slice value = scan_member(body, member);
    uint64_t starts = 0;
    *is_set = value.ptr;
    if (!value.ptr || scan_type(value) == SCAN_NULL)
        return OK;
    if (scan_type(value) != SCAN_OBJECT)
        return explain(&call->why, ERR_INVALID,
                       "%s: must be an object with starts and period, or null", member);
    if (text_to_u64(scan_member(value, "starts"), &starts) || !starts ||
        starts > RATE_STARTS_MAX)
        return explain(&call->why, ERR_INVALID,
                       "%s.starts: must be a whole number from 1 to %d", member,
                       RATE_STARTS_MAX);
    rate->starts = (uint32_t)starts;
    return read_period(scan_member(value, "period"), &rate->period_ms)
               ? OK
               : explain(&call->why, ERR_INVALID,
                         "%s.period: must be a duration in whole seconds from 1s to 1d, "
                         "such as 1m",
                         member);
}

enum err rate_change_read(struct api_call *call, struct slice body,
                          struct rate_change *change)
{
    enum err refused = read_rate(call, body, "total", &change->sets_total, &change->total);
    if (!refused)
        refused = read_rate(call, body, "perKey", &change->sets_key, &change->key);
    if (!refused && !change->sets_total && !change->sets_key)
        refused = explain(&call->why, ERR_INVALID,
                          "perKey, total: give at least one of "
                          "them");
    return refused;
}

void rate_change_apply(const struct rate_change *change, struct queue_settings *settings)
{
    if (change->sets_total)
        settings->total_rate = change->total;
    if (change->sets_key)
        settings->key_rate = change->key;
}

/* ---- responses ---- */

static void add_rate(struct buf *out, struct rate rate)
{
    char period[48];
    text_from_seconds(rate.period_ms / SECOND_MS, period);
    buf_print(out, "{\"starts\":%u,\"period\":\"%s\"", rate.starts, period);
}

/* nextAt is when the next token comes, unless all are there. */
static void add_bucket(struct buf *out, const struct environment *env,
                       const struct rate_figures *bucket)
{
    int64_t now = loop_now_ms(env->loop) * RATE_NS_PER_MS;
    struct rate rate = bucket->rate;
    uint32_t available = rate_available(rate, bucket->full_at, now);
    int64_t left =
        bucket->full_at - (rate.starts - available - 1) * rate_interval(rate) - now;
    add_rate(out, rate);
    buf_print(out, ",\"available\":%u,\"nextAt\":", available);
    if (available < rate.starts)
        buf_add_json_time(out, loop_wall_ms(env->loop) +
                                   (left + RATE_NS_PER_MS - 1) / RATE_NS_PER_MS);
    else
        buf_add_text(out, "null");
    buf_add_char(out, '}');
}

static struct rate_figures bucket_of(const struct environment *env, bool is_limit,
                                     struct slice name, struct slice key)
{
    return queues_bucket(&env->queues, (struct rate_place){ is_limit, name, key });
}

void rate_settings_show(struct buf *out, const struct environment *env, bool is_limit,
                        struct slice name)
{
    struct rate_figures total = bucket_of(env, is_limit, name, (struct slice){ 0 });
    struct rate_figures key = bucket_of(env, is_limit, name, SLICE(""));
    if (!total.rate.starts && !key.rate.starts)
        return;
    buf_add_text(out, ",\"rate\":{\"perKey\":");
    if (key.rate.starts) {
        add_rate(out, key.rate);
        buf_add_char(out, '}');
    } else {
        buf_add_text(out, "null");
    }
    buf_add_text(out, ",\"total\":");
    if (total.rate.starts)
        add_bucket(out, env, &total);
    else
        buf_add_text(out, "null");
    buf_add_char(out, '}');
}

void rate_settings_show_key(struct buf *out, const struct environment *env, bool is_limit,
                            struct slice name, struct slice key)
{
    struct rate_figures bucket = bucket_of(env, is_limit, name, key);
    if (!bucket.rate.starts)
        return;
    buf_add_text(out, ",\"rate\":");
    add_bucket(out, env, &bucket);
}

/* ---- documents ---- */

static void write_rate(struct buf *out, const char *member, struct rate rate)
{
    if (rate.starts)
        buf_print(out, ",\"%s\":{\"starts\":%u,\"periodMs\":%u}", member, rate.starts,
                  rate.period_ms);
}

void rate_settings_write(struct buf *out, const struct queue_settings *settings)
{
    write_rate(out, "totalRate", settings->total_rate);
    write_rate(out, "keyRate", settings->key_rate);
}

static bool restore_rate(struct slice body, const char *member, struct rate *rate)
{
    struct slice value = scan_member(body, member);
    int64_t starts = 0, period_ms = 0;
    if (!value.ptr)
        return true;
    bool is_right = members_number(value, "starts", &starts) && starts >= 1 &&
                    starts <= RATE_STARTS_MAX &&
                    members_number(value, "periodMs", &period_ms) &&
                    period_ms >= RATE_PERIOD_MIN_MS && period_ms <= RATE_PERIOD_MAX_MS;
    *rate = (struct rate){ (uint32_t)starts, (uint32_t)period_ms };
    return is_right;
}

bool rate_settings_read(struct slice body, struct queue_settings *settings)
{
    return restore_rate(body, "totalRate", &settings->total_rate) &&
           restore_rate(body, "keyRate", &settings->key_rate);
}
