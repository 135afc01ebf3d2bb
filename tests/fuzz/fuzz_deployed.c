/* fuzz_deployed - calls of workers that have a token and take runs of deployed environments. */
#include "tests/fuzz/calls.h"

#define ACTIONS "/engine/v1/worker-actions"
#define EXECUTING ACTIONS "/runs/{deployed}/snapshots/{snapshot}"

static const struct fuzz_call calls[] = {
    { API_KEY_WORKER, "POST", ACTIONS "/connect", NULL, NULL },
    { API_KEY_WORKER, "POST", ACTIONS "/dequeue", NULL, NULL },
    { API_KEY_WORKER, "POST", ACTIONS "/heartbeat", NULL, NULL },
    { API_KEY_WORKER, "GET", ACTIONS "/runs/{*}", NULL, NULL },
    { API_KEY_WORKER, "GET", ACTIONS "/runs/{deployed}/snapshots/since/{*}", NULL, NULL },
    { API_KEY_WORKER, "POST", EXECUTING "/attempts/start", NULL, NULL },
    { API_KEY_WORKER, "POST", EXECUTING "/attempts/complete", NULL, NULL },
    { API_KEY_WORKER, "POST", EXECUTING "/heartbeat", NULL, NULL },
    { API_KEY_WORKER, "POST", EXECUTING "/release", NULL, NULL },
    { API_KEY_WORKER, "POST", EXECUTING "/suspend", NULL, NULL },
    { API_KEY_WORKER, "GET", EXECUTING "/continue?{*}", NULL, NULL },
    { API_KEY_WORKER, "POST", EXECUTING "/restore-outcome", NULL, NULL },
    { API_KEY_WORKER, "POST", ACTIONS "/runs/{deployed}/logs/debug", NULL, NULL },
    { API_KEY_WORKER, "POST", ACTIONS "/{*}", NULL, NULL },
    { 0 },
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_call(calls, data, size);
}
