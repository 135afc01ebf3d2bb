/* Idempotency keys of clients in bodies. */
#include "tests/support/world/unit.h"

#include "api/request/route.h"
#include "api/triggers/own_keys.h"

static const struct {
    const char *body;
    bool has_keys;
} bodies[] = {
    { "", false },
    { "{", false },
    { "null", false },
    { "[]", false },
    { "{}", false },
    { "{\"payload\":{\"idempotencyKey\":\"a\"}}", false },
    { "{\"options\":{\"idempotencyKey\":\"a\"}}", true },
    { "{\"options\":{\"idempotencyKey\":\"\"}}", false },
    { "{\"options\":{\"idempotencyKey\":1}}", false },
    { "{\"options\":null}", false },
    { "{\"idempotencyKey\":\"a\"}", true },
    { "{\"idempotencyKey\":null}", false },
    { "{\"items\":[]}", false },
    { "{\"items\":{\"options\":{\"idempotencyKey\":\"a\"}}}", false },
    { "{\"items\":[{\"options\":{\"idempotencyKey\":\"a\"}}]}", true },
    { "{\"items\":[{\"options\":{\"idempotencyKey\":\"a\"}},{}]}", false },
    { "{\"items\":[{},{\"options\":{\"idempotencyKey\":\"a\"}}]}", false },
};

static void keys_count_where_calls_take_them(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++)
        if (own_keys_are_in(slice_of(bodies[i].body)) != bodies[i].has_keys)
            fail_msg("%s", bodies[i].body);
}

static void clients_repeat_what_has_a_key(void **state)
{
    static const struct http_header key = { SLICE(API_REQUEST_KEY), SLICE("a") };
    const struct slice keyed = SLICE("{\"options\":{\"idempotencyKey\":\"a\"}}");
    struct route route = { .claims = true, .takes_key = true };
    struct exchange x = { .headers = &key };
    struct api_call call = { .x = &x, .route = &route };
    (void)state;
    assert_true(own_keys_lack(&call, SLICE("{}")));
    assert_true(own_keys_lack(&call, (struct slice){ 0 }));
    assert_false(own_keys_lack(&call, keyed));
    x.header_count = 1;
    assert_false(own_keys_lack(&call, SLICE("{}")));
    x.header_count = 0;
    route.takes_key = false;
    assert_true(own_keys_lack(&call, keyed));
    struct run run = { 0 };
    run_rare_edit(&run)->idempotency_key = bytes_create(SLICE("a"));
    own_keys_note(&call, &run);
    assert_false(own_keys_lack(&call, (struct slice){ 0 }));
    run_finish(&run);
    own_keys_note(&call, &(struct run){ 0 }); /* another item of the batch */
    assert_true(own_keys_lack(&call, (struct slice){ 0 }));
    route.claims = false; /* a repetition does no harm */
    assert_false(own_keys_lack(&call, SLICE("{}")));
    call.route = NULL;
    assert_false(own_keys_lack(&call, SLICE("{}")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_count_where_calls_take_them),
        cmocka_unit_test(clients_repeat_what_has_a_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
