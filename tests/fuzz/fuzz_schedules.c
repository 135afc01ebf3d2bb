/* fuzz_schedules - schedules: their definitions, and the queries of their lists. */
#include "tests/fuzz/calls.h"

static const struct fuzz_call calls[] = {
    { API_KEY_DEV, "POST", "/api/v1/schedules", NULL, "/api/v1/schedules/{id}" },
    { API_KEY_DEV, "PUT", "/api/v1/schedules/{schedule}", NULL, "/api/v1/schedules/{id}" },
    { API_KEY_DEV, "GET", "/api/v1/schedules?{*}", NULL, NULL },
    { API_KEY_DEV, "GET", "/api/v1/schedules/{*}", NULL, NULL },
    { API_KEY_NONE, "GET", "/api/v1/timezones?{*}", NULL, NULL },
    { 0 },
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_call(calls, data, size);
}
