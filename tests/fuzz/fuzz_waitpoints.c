/* fuzz_waitpoints - waitpoints: created, listed, completed by a key or by their URL. */
#include "tests/fuzz/calls.h"

static const struct fuzz_call calls[] = {
    { API_KEY_DEV, "POST", "/api/v1/waitpoints/tokens", NULL,
      "/api/v1/waitpoints/tokens/{id}" },
    { API_KEY_DEV, "POST", "/api/v1/waitpoints/tokens/{token}/complete", NULL, NULL },
    { API_KEY_NONE, "POST", "{callback}", NULL, NULL },
    { API_KEY_DEV, "POST", "/api/v1/runs/{executing}/input-streams/wait", NULL, NULL },
    { API_KEY_DEV, "GET", "/api/v1/waitpoints/tokens?{*}", NULL, NULL },
    { API_KEY_DEV, "GET", "/api/v1/waitpoints/tokens/{*}", NULL, NULL },
    { API_KEY_NONE, "POST", "/api/v1/waitpoints/tokens/{token}/callback/{*}", NULL, NULL },
    { 0 },
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_call(calls, data, size);
}
