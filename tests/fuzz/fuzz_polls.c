/* fuzz_polls - long polls and event streams of runs: offsets, handles, columns, filters. */
#include "tests/fuzz/calls.h"

static const struct fuzz_call calls[] = {
    { API_KEY_DEV, "GET", "/realtime/v1/runs/{run}?{*}", NULL, NULL },
    { API_KEY_DEV, "GET", "/realtime/v1/runs?{*}", NULL, NULL },
    { API_KEY_DEV, "GET", "/realtime/v1/batches/{batch}?{*}", NULL, NULL },
    { API_KEY_DEV, "GET", "/realtime/v1/events?{*}", NULL, NULL },
    { API_KEY_DEV, "GET", "/realtime/v1/runs/{*}", NULL, NULL },
    { API_KEY_DEV, "GET", "/realtime/v1/ws?{*}", NULL, NULL },
    { API_KEY_DEV, "GET", "/socket.io/?{*}", NULL, NULL },
    { 0 },
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_call(calls, data, size);
}
