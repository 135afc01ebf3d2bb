/* Idempotency keys of clients in bodies. */
#include "tests/support/world/unit.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(
        keys_count_where_calls_take_them) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
