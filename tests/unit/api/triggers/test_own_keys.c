/* Idempotency keys of clients in bodies. */
#include "tests/support/world/unit.h"

#include "api/triggers/own_keys.h"

enum {
    BODY = 1 << OWN_KEY_IN_BODY,
    OPTIONS = 1 << OWN_KEY_IN_OPTIONS,
    ITEMS = 1 << OWN_KEY_IN_ITEMS
};

static const struct {
    const char *body;
    unsigned routes; /* for which it has keys */
} bodies[] = {
    { "", 0 },
    { "{", 0 },
    { "null", 0 },
    { "[]", 0 },
    { "{}", 0 },
    { "{\"payload\":{\"idempotencyKey\":\"a\"}}", 0 },
    { "{\"options\":{\"idempotencyKey\":\"a\"}}", OPTIONS },
    { "{\"options\":{\"idempotencyKey\":\"\"}}", 0 },
    { "{\"options\":{\"idempotencyKey\":1}}", 0 },
    { "{\"options\":null}", 0 },
    { "{\"idempotencyKey\":\"a\"}", BODY },
    { "{\"idempotencyKey\":null}", 0 },
    { "{\"items\":[]}", 0 },
    { "{\"items\":{\"options\":{\"idempotencyKey\":\"a\"}}}", 0 },
    { "{\"items\":[{\"options\":{\"idempotencyKey\":\"a\"}}]}", ITEMS },
    { "{\"items\":[{\"idempotencyKey\":\"a\"}]}", 0 },
    { "{\"items\":[{\"options\":{\"idempotencyKey\":\"a\"}},{}]}", 0 },
    { "{\"items\":[{},{\"options\":{\"idempotencyKey\":\"a\"}}]}", 0 },
    /* twice */
    { "{\"idempotencyKey\":\"\",\"idempotencyKey\":\"a\"}", 0 },
    { "{\"options\":{},\"options\":{\"idempotencyKey\":\"a\"}}", 0 },
    /* keys that expire before the client repeats the call */
    { "{\"idempotencyKey\":\"a\",\"idempotencyKeyTTL\":null}", BODY },
    { "{\"idempotencyKey\":\"a\",\"idempotencyKeyTTL\":\"5m\"}", BODY },
    { "{\"idempotencyKey\":\"a\",\"idempotencyKeyTTL\":\"4m\"}", 0 },
    { "{\"options\":{\"idempotencyKey\":\"a\",\"idempotencyKeyTTL\":\"1s\"}}", 0 },
    { "{\"options\":{\"idempotencyKey\":\"a\",\"idempotencyKeyTTL\":\"later\"}}", 0 },
};

static void keys_count_where_routes_take_them(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++)
        for (enum own_key where = OWN_KEY_NONE; where <= OWN_KEY_IN_ITEMS; where++)
            if (own_keys_are_in(slice_of(bodies[i].body), where) !=
                (bodies[i].routes >> where & 1))
                fail_msg("%s, %d", bodies[i].body, where);
}

static void clients_repeat_what_has_a_key(void **state)
{
    static const struct http_header key = { SLICE(API_REQUEST_KEY), SLICE("a") };
    static const struct http_header life = { SLICE("idempotency-key-ttl"), SLICE("1s") };
    const struct slice keyed = SLICE("{\"options\":{\"idempotencyKey\":\"a\"}}");
    struct route route = { .claims = true, .own_key = OWN_KEY_IN_OPTIONS };
    struct exchange x = { .headers = &key };
    struct api_call call = { .x = &x, .route = &route };
    (void)state;
    assert_true(own_keys_lack(&call, SLICE("{}")));
    assert_true(own_keys_lack(&call, (struct slice){ 0 }));
    assert_false(own_keys_lack(&call, keyed));
    x.header_count = 1;
    assert_false(own_keys_lack(&call, SLICE("{}")));
    x.headers = &life; /* of the key in the body, too */
    assert_true(own_keys_lack(&call, keyed));
    x.header_count = 0;
    route.own_key = OWN_KEY_NONE;
    assert_true(own_keys_lack(&call, keyed));
    struct trigger item = { .key_expires_at = 5 * 60 * 1000 };
    run_rare_edit(&item.run)->idempotency_key = bytes_create(SLICE("a"));
    own_keys_note(&call, &item, 0);
    assert_false(own_keys_lack(&call, (struct slice){ 0 }));
    own_keys_note(&call, &item,
                  1); /* another item of the batch, whose key expires too soon */
    assert_true(own_keys_lack(&call, (struct slice){ 0 }));
    call.own_keys = OWN_KEYS_UNKNOWN;
    run_finish(&item.run);
    own_keys_note(&call, &(struct trigger){ 0 }, 0);
    assert_true(own_keys_lack(&call, (struct slice){ 0 }));
    route.own_key = OWN_KEY_IN_OPTIONS; /* the handler knows better than the body */
    assert_true(own_keys_lack(&call, keyed));
    route.claims = false; /* a repetition does no harm */
    assert_false(own_keys_lack(&call, SLICE("{}")));
    call.route = NULL;
    assert_false(own_keys_lack(&call, SLICE("{}")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_count_where_routes_take_them),
        cmocka_unit_test(clients_repeat_what_has_a_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
