/* fuzz_packets - packets: their names, their signed URLs, and references in runs. */
#include "tests/fuzz/calls.h"

static const struct fuzz_call calls[] = {
    { API_KEY_DEV, "PUT", "/api/v2/packets/{*}", NULL, NULL },
    { API_KEY_DEV, "GET", "/api/v1/packets/{*}", NULL, NULL },
    { API_KEY_NONE, "PUT", "{upload}", "Content-Type: application/json\r\n", NULL },
    { API_KEY_NONE, "GET", "{download}&{*}", NULL, NULL },
    { API_KEY_NONE, "GET", "/packets/v1/{*}", NULL, NULL },
    { API_KEY_NONE, "PUT", "/packets/v1/{*}", NULL, NULL },
    { API_KEY_DEV, "GET", "/api/v1/runs/{run}/packets/{*}", NULL, NULL },
    { API_KEY_NONE, "PUT", "{upload}", "Content-Type: {*}\r\n", NULL },
    { API_KEY_NONE, "POST", "/otel/{*}", NULL, NULL },
    { API_KEY_NONE, "POST", "/otel/v1/traces", NULL, NULL },
    { API_KEY_NONE, "POST", "{telemetry}/v1/traces", NULL, NULL },
    { API_KEY_NONE, "POST", "{telemetry}/v1/logs", NULL, NULL },
    { 0 },
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_call(calls, data, size);
}
