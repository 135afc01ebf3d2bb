/* fuzz_deployments - calls of the CLI, builds and builders about deployments. */
#include "tests/fuzz/calls.h"

#define ACTIONS "/engine/v1/worker-actions"
#define ONE "/api/v1/deployments/{*}"

static const struct fuzz_call calls[] = {
    { API_KEY_PROD, "POST", "/api/v1/artifacts", NULL, NULL },
    { API_KEY_PROD, "POST", "/api/v1/deployments", NULL, NULL },
    { API_KEY_PROD, "GET", "/api/v1/deployments?{*}", NULL, NULL },
    { API_KEY_PROD, "GET", ONE, NULL, NULL },
    { API_KEY_PROD, "POST", ONE "/promote", NULL, NULL },
    { API_KEY_PROD, "POST", ONE "/background-workers", NULL, NULL },
    { API_KEY_PROD, "POST", "/api/v1/deployments/a/background-workers", NULL, NULL },
    { API_KEY_PROD, "POST", "/api/v1/deployments/a/fail", NULL, NULL },
    { API_KEY_PROD, "POST", "/api/v1/deployments/a/cancel", NULL, NULL },
    { API_KEY_PROD, "GET", "/api/v1/projects/{*}/deploy-settings", NULL, NULL },
    { API_KEY_PERSONAL, "GET", "/api/v1/projects/{*}/workers/current", NULL, NULL },
    { API_KEY_PERSONAL, "POST", "/api/v1/projects/{ref}/prod/jwt", NULL, NULL },
    { API_KEY_NONE, "POST", "/artifacts/v1/{env}/{*}", NULL, NULL },
    { API_KEY_WORKER, "POST", ACTIONS "/builds/{*}/heartbeat", NULL, NULL },
    { API_KEY_WORKER, "POST", ACTIONS "/builds/a/complete", NULL, NULL },
    { API_KEY_WORKER, "GET", ACTIONS "/deployments/{*}/archive", NULL, NULL },
    { 0 },
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_call(calls, data, size);
}
