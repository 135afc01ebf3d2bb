/* fuzz_workers - calls of workers: registration, dequeue, heartbeat, completion, waits. A
 * completion may contain metadata. */
#include "tests/fuzz/calls.h"

static const struct fuzz_call calls[] = {
    { API_KEY_DEV, "POST", "/api/v1/projects/{ref}/background-workers", NULL, NULL },
    { API_KEY_DEV, "POST",
      "/engine/v1/dev/runs/{executing}/snapshots/{snapshot}/attempts/complete", NULL,
      NULL },
    { API_KEY_DEV, "POST", "/engine/v1/dev/runs/{executing}/snapshots/{snapshot}/heartbeat",
      NULL, NULL },
    { API_KEY_DEV, "POST", "/engine/v1/runs/{executing}/wait/duration", NULL, NULL },
    { API_KEY_DEV, "POST", "/engine/v1/dev/dequeue", NULL, NULL },
    { API_KEY_DEV, "POST", "/engine/v1/dev/disconnect", NULL, NULL },
    { API_KEY_DEV, "POST", "/engine/v1/runs/{executing}/waitpoints/tokens/{token}/wait",
      NULL, NULL },
    { API_KEY_DEV, "POST", "/engine/v1/dev/runs/{*}/snapshots/x/attempts/start", NULL,
      NULL },
    { API_KEY_PROD, "POST", "/api/v1/projects/{ref}/background-workers", NULL, NULL },
    { 0 },
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_call(calls, data, size);
}
