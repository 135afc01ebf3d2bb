/* own_keys.c - reads a body as a tree, and looks for idempotency keys where calls take them. */
#include "api/triggers/own_keys.h"

#include "api/request/route.h"
#include "base/json/json_tree.h"

static bool has_key(const json_t *object)
{
    return json_string_length(json_object_get(object, "idempotencyKey")) > 0;
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

bool own_keys_are_in(struct slice body)
{
    json_t *tree = json_tree_read(body, 0, NULL);
    bool are = has_key(tree) || has_key_in_options(tree) ||
               all_have_keys(json_object_get(tree, "items"));
    json_decref(tree);
    return are;
}

void own_keys_note(struct api_call *call, const struct run *run)
{
    if (!run_rare(run)->idempotency_key)
        call->own_keys = OWN_KEYS_LACK;
    else if (!call->own_keys)
        call->own_keys = OWN_KEYS_ALL;
}

bool own_keys_lack(const struct api_call *call, struct slice body)
{
    const struct route *route = call->route;
    if (!route || !route->claims || http_header(call->x, API_REQUEST_KEY).len)
        return false;
    return call->own_keys != OWN_KEYS_ALL && !(route->takes_key && own_keys_are_in(body));
}
