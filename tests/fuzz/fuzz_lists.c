/* fuzz_lists - cursors and filters of lists, and names in their paths. */
#include "tests/fuzz/calls.h"

static const struct fuzz_call calls[] = {
    { API_KEY_DEV, "GET", "/api/v1/runs?{*}", NULL, NULL },
    { API_KEY_PERSONAL, "GET", "/api/v1/projects/{ref}/runs?{*}", NULL, NULL },
    { API_KEY_DEV, "GET", "/api/v1/runs/{run}/trace?{*}", NULL, NULL },
    { API_KEY_DEV, "GET", "/api/v1/runs/{run}/events?{*}", NULL, NULL },
    { API_KEY_DEV, "GET", "/api/v1/runs/{run}/spans/{*}", NULL, NULL },
    { API_KEY_DEV, "GET", "/api/v3/runs/{*}", NULL, NULL },
    { API_KEY_DEV, "GET", "/api/v2/batches/{*}", NULL, NULL },
    { API_KEY_DEV, "GET", "/api/v1/batches/{batch}/results?{*}", NULL, NULL },
    { API_KEY_PERSONAL, "GET", "/api/v1/orgs/{*}/projects", NULL, NULL },
    { API_KEY_PERSONAL, "GET", "/api/v2/whoami?{*}", NULL, NULL },
    { API_KEY_DEV, "GET", "/{*}", NULL, NULL },
    { API_KEY_DEV, "POST", "/{*}", NULL, NULL },
    { 0 },
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_call(calls, data, size);
}
