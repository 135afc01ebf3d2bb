/* fuzz_settings - settings of environments: variables, queues, branches, public tokens. */
#include "tests/fuzz/calls.h"

static const struct fuzz_call calls[] = {
    { API_KEY_DEV, "POST", "/api/v1/projects/{ref}/envvars/dev", NULL,
      "/api/v1/projects/{ref}/envvars/dev" },
    { API_KEY_DEV, "POST", "/api/v1/projects/{ref}/envvars/dev/import", NULL,
      "/api/v1/projects/{ref}/envvars/dev" },
    { API_KEY_DEV, "PUT", "/api/v1/projects/{ref}/envvars/dev/{*}", NULL, NULL },
    { API_KEY_DEV, "GET", "/api/v1/projects/{ref}/envvars/dev/{*}", NULL, NULL },
    { API_KEY_DEV, "DELETE", "/api/v1/projects/{ref}/envvars/dev/{*}", NULL, NULL },
    { API_KEY_DEV, "POST", "/api/v1/queues/hello/pause", NULL, NULL },
    { API_KEY_DEV, "POST", "/api/v1/queues/hello/concurrency/override", NULL,
      "/api/v1/queues/hello?type=task" },
    { API_KEY_DEV, "POST", "/api/v1/queues/{*}/pause", NULL, NULL },
    { API_KEY_DEV, "GET", "/api/v1/queues?{*}", NULL, NULL },
    { API_KEY_DEV, "GET", "/api/v1/queues/{*}", NULL, NULL },
    { API_KEY_PERSONAL, "POST", "/api/v1/projects/{ref}/branches", NULL,
      "/api/v1/projects/{ref}/branches" },
    { API_KEY_PERSONAL, "POST", "/api/v1/projects/{ref}/branches/archive", NULL, NULL },
    { API_KEY_DEV, "POST", "/api/v1/auth/public-tokens", NULL, NULL },
    { API_KEY_DEV, "POST", "/api/v1/auth/jwt", NULL, NULL },
    { API_KEY_PERSONAL, "GET", "/api/v1/projects/{*}", NULL, NULL },
    { 0 },
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_call(calls, data, size);
}
