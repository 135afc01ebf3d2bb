/* rates.c - takes tokens for leases, stores them as claims, and wakes runs at a refill. */
#include "core/state/rates.h"

#include "base/json/scan.h"
#include "base/mem.h"
#include "core/state/members.h"

/* The owner of all claims of buckets, which takes them again and again. */
static const char owner[] = "rate";

static const char of_queue[] = "queue", of_limit[] = "limit";

/* ---- the key of a claim ---- */

static struct bytes *key_of_place(struct rate_place place)
{
    struct buf out = { 0 };
    buf_print(&out, "[\"%s\",", place.is_limit ? of_limit : of_queue);
    buf_add_json(&out, place.name);
    if (place.key.ptr) {
        buf_add_char(&out, ',');
        buf_add_json(&out, place.key);
    }
    buf_add_char(&out, ']');
    struct bytes *key = buf_to_bytes(&out);
    buf_finish(&out);
    return key;
}

struct place_text {
    struct buf name, key;
    struct rate_place place; /* borrows them */
};

/* An empty concurrencyKey is one, and not the absence of one. */
static struct slice present(const struct buf *text)
{
    return text->len ? buf_slice(text) : SLICE("");
}

static bool read_place(struct slice claim_key, struct place_text *out)
{
    struct scan_members elements = scan_members(claim_key);
    struct slice element;
    *out = (struct place_text){ 0 };
    if (!scan_is_json(claim_key) || !scan_next_element(&elements, &element))
        return false;
    out->place.is_limit = slice_is(scan_unquoted(element), of_limit);
    if (!scan_next_element(&elements, &element) || !scan_string(element, &out->name))
        return false;
    out->place.name = present(&out->name);
    if (scan_next_element(&elements, &element) && scan_string(element, &out->key))
        out->place.key = present(&out->key);
    return true;
}

static void finish_place(struct place_text *text)
{
    buf_finish(&text->name);
    buf_finish(&text->key);
}

/* ---- the tokens of a lease ---- */

/* Returns when a bucket will be full, by the wall clock. */
static int64_t expiry_of(const struct engine *engine, int64_t full_at)
{
    int64_t left = full_at - loop_now_ms(engine->loop) * RATE_NS_PER_MS;
    int64_t left_ms = left > 0 ? (left + RATE_NS_PER_MS - 1) / RATE_NS_PER_MS : 0;
    return loop_wall_ms(engine->loop) + left_ms;
}

struct rate_claims *rates_take(struct engine *engine, struct environment *env,
                               const struct queue_item *item)
{
    struct rate_figures buckets[RATE_BUCKETS_MAX];
    queues_take_tokens(&env->queues, item, loop_now_ms(engine->loop));
    size_t count = queues_buckets(&env->queues, item, buckets);
    if (!count)
        return NULL;
    struct rate_claims *rates = mem_new(struct rate_claims);
    for (; rates->count < count; rates->count++) {
        struct claim *claim = &rates->claims[rates->count];
        *claim = (struct claim){ .kind = CLAIM_RATE,
                                 .env = env->number,
                                 .key = key_of_place(buckets[rates->count].place) };
        memcpy(claim->owner, owner, sizeof(owner));
    }
    engine_refill(engine, env);
    return rates;
}

void rates_refresh(struct engine *engine, const struct environment *env,
                   struct rate_claims *rates)
{
    for (size_t i = 0; rates && i < rates->count; i++) {
        struct claim *claim = &rates->claims[i];
        struct place_text text;
        read_place(bytes_slice(claim->key), &text);
        claim->expires_at =
            expiry_of(engine, queues_bucket(&env->queues, text.place).full_at);
        finish_place(&text);
    }
}

void rates_end(struct engine *engine, struct environment *env, struct rate_claims *rates,
               bool returns)
{
    if (!rates)
        return;
    for (size_t i = 0; i < rates->count; i++) {
        struct claim *claim = &rates->claims[i];
        struct place_text text;
        read_place(bytes_slice(claim->key), &text);
        if (returns)
            queues_return_token(&env->queues, text.place, loop_now_ms(engine->loop));
        finish_place(&text);
        bytes_unref(claim->key);
    }
    free(rates);
    engine_refill(engine, env);
}

/* ---- refills ---- */

void engine_refill(struct engine *engine, struct environment *env)
{
    struct engine_share *share = engine_share_of(env);
    int64_t next = queues_refill(&env->queues, loop_now_ms(engine->loop));
    if (next == INT64_MAX)
        timers_clear(loop_timers(engine->loop), &share->refill);
    else
        timers_set(loop_timers(engine->loop), &share->refill, engine->refill_kind, next);
}

void rates_on_refill(struct timer *timer)
{
    struct environment *env = container_of(timer, struct engine_share, refill)->env;
    engine_refill(env->engine, env);
    engine_match(env->engine, env);
}

void engine_restore_rate(struct engine *engine, const struct document *claim)
{
    struct environment *env = engine_environment(engine, claim->env);
    int64_t left_ms = claim->stale_at - loop_wall_ms(engine->loop);
    struct place_text text;
    if (env && read_place(bytes_slice(claim->name), &text)) {
        queues_restore_bucket(&env->queues, text.place, left_ms, loop_now_ms(engine->loop));
        engine_refill(engine, env);
    }
    if (env)
        finish_place(&text);
}
