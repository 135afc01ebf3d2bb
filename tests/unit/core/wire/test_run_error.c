/* A stored error as clients see it. */
#include "tests/support/world/unit.h"

#include "core/wire/run_error.h"

static void error_is_shown_as_message_name_and_stack(void **state)
{
    (void)state;
    static const struct {
        const char *stored, *shown;
    } cases[] = {
        { "{\"type\":\"BUILT_IN_ERROR\",\"name\":\"TypeError\",\"message\":\"a \\\"b\\\"\","
          "\"stackTrace\":\"at x\",\"causes\":[{\"message\":\"c\"}]}",
          "{\"message\":\"a \\\"b\\\"\",\"name\":\"TypeError\",\"stackTrace\":\"at x\"}" },
        { "{\"message\":\"m\",\"type\":\"BUILT_IN_ERROR\"}", "{\"message\":\"m\"}" },
        { "{\"type\":\"CUSTOM_ERROR\",\"raw\":\"{\\\"code\\\":1}\"}",
          "{\"message\":\"{\\\"code\\\":1}\"}" },
        { "{\"type\":\"STRING_ERROR\",\"raw\":\"Canceled by user\"}",
          "{\"message\":\"Canceled by user\"}" },
        { "{\"type\":\"INTERNAL_ERROR\",\"code\":\"MAX_DURATION_EXCEEDED\","
          "\"message\":\"took long\",\"stackTrace\":\"at y\"}",
          "{\"message\":\"trigger.dev internal error (MAX_DURATION_EXCEEDED)\","
          "\"stackTrace\":\"at y\"}" },
        { "{\"type\":\"INTERNAL_ERROR\",\"code\":\"TASK_RUN_CANCELLED\",\"message\":"
          "\"\\\"b\\\"\"}",
          "{\"message\":\"trigger.dev internal error (TASK_RUN_CANCELLED): \\\"b\\\"\"}" },
        { "{\"type\":\"INTERNAL_ERROR\",\"code\":\"TASK_RUN_STALLED_EXECUTING\","
          "\"message\":\"gone\"}",
          "{\"message\":\"trigger.dev internal error (TASK_RUN_STALLED_EXECUTING): "
          "gone\"}" },
        { "{\"type\":\"INTERNAL_ERROR\",\"code\":\"TASK_RUN_CANCELLED\"}",
          "{\"message\":\"trigger.dev internal error (TASK_RUN_CANCELLED)\"}" },
        { "{\"type\":\"INTERNAL_ERROR\",\"message\":\"m\"}", "{\"message\":\"m\"}" },
        { "{\"type\":\"STRING_ERROR\",\"raw\":\"r\",\"name\":\"N\",\"stackTrace\":\"at "
          "z\"}",
          "{\"message\":\"r\"}" },
        { "{\"type\":\"NEW\",\"message\":\"m\",\"name\":3}", "{\"message\":\"m\"}" },
        { "{\"type\":\"BUILT_IN_ERROR\",\"message\":null}", "{\"message\":\"\"}" },
        { "[]", "{\"message\":\"\"}" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct buf out = { 0 };
        struct bytes *stored = bytes_create(slice_of(cases[i].stored));
        run_error_render(stored, &out);
        assert_true(slice_is(buf_slice(&out), cases[i].shown));
        bytes_unref(stored);
        buf_finish(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(error_is_shown_as_message_name_and_stack),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
