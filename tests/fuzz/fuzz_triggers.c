/* fuzz_triggers - calls that make runs or change their options, tags and metadata. Items of
 * batches come as an array and as lines. */
#include "tests/fuzz/calls.h"

static const struct fuzz_call calls[] = {
    { API_KEY_DEV, "POST", "/api/v1/tasks/hello/trigger", NULL, "/api/v3/runs/{id}" },
    { API_KEY_DEV, "POST", "/api/v1/tasks/batch", NULL, "/api/v1/runs" },
    { API_KEY_DEV, "POST", "/api/v2/tasks/batch", NULL, "/api/v2/batches/{id}" },
    { API_KEY_DEV, "POST", "/api/v3/batches", NULL, "/api/v2/batches/{id}" },
    { API_KEY_DEV, "POST", "/api/v3/batches/{batch}/items",
      "Content-Type: application/x-ndjson\r\n", "/api/v1/runs" },
    { API_KEY_DEV, "POST", "/api/v1/runs/{run}/replay", NULL, "/api/v3/runs/{id}" },
    { API_KEY_DEV, "POST", "/api/v1/runs/{run}/reschedule", NULL, "/api/v3/runs/{id}" },
    { API_KEY_DEV, "POST", "/api/v1/runs/{run}/tags", NULL, "/api/v1/runs" },
    { API_KEY_DEV, "PUT", "/api/v1/runs/{run}/metadata", NULL, "/api/v1/runs" },
    { API_KEY_DEV, "POST", "/api/v1/idempotencyKeys/k/reset", NULL, NULL },
    { 0 },
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_call(calls, data, size);
}
