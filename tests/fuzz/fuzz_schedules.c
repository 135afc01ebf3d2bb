/* fuzz_schedules - schedules: their definitions, and the queries of their lists. */
#include "tests/fuzz/calls.h"

const struct fuzz_call fuzz_calls[] = {
    { API_KEY_DEV, "POST", "/api/v1/schedules", NULL, "/api/v1/schedules/{id}" },
    { API_KEY_DEV, "PUT", "/api/v1/schedules/{schedule}", NULL, "/api/v1/schedules/{id}" },
    { API_KEY_DEV, "GET", "/api/v1/schedules?{*}", NULL, NULL },
    { API_KEY_DEV, "GET", "/api/v1/schedules/{*}", NULL, NULL },
    { API_KEY_NONE, "GET", "/api/v1/timezones?{*}", NULL, NULL },
    { 0 },
};
