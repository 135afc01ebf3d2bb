/* fuzz_polls - long polls and event streams of runs: offsets, handles, columns, filters. */
#include "tests/fuzz/calls.h"

const struct fuzz_call fuzz_calls[] = {
    { API_KEY_DEV, "GET", "/realtime/v1/runs/{run}?{*}", NULL, NULL },
    { API_KEY_DEV, "GET", "/realtime/v1/runs?{*}", NULL, NULL },
    { API_KEY_DEV, "GET", "/realtime/v1/batches/{batch}?{*}", NULL, NULL },
    { API_KEY_DEV, "GET", "/realtime/v1/events?{*}", NULL, NULL },
    { API_KEY_DEV, "GET", "/realtime/v1/runs/{*}", NULL, NULL },
    { API_KEY_DEV, "GET", "/realtime/v1/ws?{*}", NULL, NULL },
    { API_KEY_DEV, "GET", "/socket.io/?{*}", NULL, NULL },
    { 0 },
};
