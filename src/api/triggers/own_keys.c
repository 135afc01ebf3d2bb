/* own_keys.c - reads a body as a tree, and looks for idempotency keys where its route takes them. */
#include "api/triggers/own_keys.h"

#include "base/json/json_tree.h"
#include "base/text.h"

enum { LEAST_MS = 5 * 60 * 1000 }; /* clients repeat a call for a shorter time */

static bool lasts(const json_t *ttl)
{
    struct slice text = { json_string_value(ttl), json_string_length(ttl) };
    int64_t ms = LEAST_MS;
    return !text.len || (!text_to_duration_ms(text, &ms) && ms >= LEAST_MS);
}

static bool has_key(const json_t *object)
{
    return json_string_length(json_object_get(object, "idempotencyKey")) > 0 &&
           lasts(json_object_get(object, "idempotencyKeyTTL"));
}

static bool has_key_in_options(const json_t *object)
{
    return has_key(json_object_get(object, "options"));
}

static bool all_have_keys(const json_t *items)
{
    size_t count = json_array_size(items), at = 0;
    while (at < count && has_key_in_options(json_array_get(items, at)))
        at++;
    return count && at == count;
}

static bool are_in(const json_t *tree, enum own_key where)
{
    switch (where) {
    case OWN_KEY_IN_BODY: return has_key(tree);
    case OWN_KEY_IN_OPTIONS: return has_key_in_options(tree);
    case OWN_KEY_IN_ITEMS: return all_have_keys(json_object_get(tree, "items"));
    default: return false;
    }
}

bool own_keys_are_in(struct slice body, enum own_key where)
{
    json_t *tree = where ? json_tree_read(body, TREE_ONE_OF_EACH, NULL) : NULL;
    bool are = are_in(tree, where);
    json_decref(tree);
    return are;
}

void own_keys_note(struct api_call *call, const struct trigger *item, int64_t now_ms)
{
    if (!run_rare(&item->run)->idempotency_key || item->key_expires_at - now_ms < LEAST_MS)
        call->own_keys = OWN_KEYS_LACK;
    else if (!call->own_keys)
        call->own_keys = OWN_KEYS_ALL;
}

bool own_keys_lack(const struct api_call *call, struct slice body)
{
    const struct route *route = call->route;
    if (!route || !route->claims || http_header(call->x, API_REQUEST_KEY).len)
        return false;
    if (call->own_keys)
        return call->own_keys == OWN_KEYS_LACK;
    /* The header overrides the lifetimes in the body. */
    bool may_expire = http_header(call->x, "idempotency-key-ttl").len > 0;
    return may_expire || !own_keys_are_in(body, route->own_key);
}
