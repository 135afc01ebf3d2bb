/* fuzz_signed - correctly signed requests: URLs with any name and time, public tokens.
 *
 * The claims of the tokens come from the input too. */
#include "tests/fuzz/calls.h"

#define TOKEN "Authorization: Bearer {public token}\r\n"

static const struct fuzz_call calls[] = {
    { API_KEY_NONE, "GET", "{signed download}", NULL, NULL },
    { API_KEY_NONE, "PUT", "{signed upload}", "Content-Type: application/json\r\n", NULL },
    { API_KEY_NONE, "POST", "{signed callback}", NULL, NULL },
    { API_KEY_NONE, "GET", "/api/v3/runs/{run}", TOKEN, NULL },
    { API_KEY_NONE, "POST", "/api/v1/tasks/hello/trigger", TOKEN, NULL },
    { API_KEY_NONE, "GET", "/api/v1/runs?{*}", TOKEN, NULL },
    { API_KEY_NONE, "GET", "/realtime/v1/runs?{*}", TOKEN, NULL },
    { API_KEY_NONE, "GET", "/realtime/v1/events?{*}", TOKEN, NULL },
    { API_KEY_NONE, "GET", "/realtime/v1/batches/{batch}?{*}", TOKEN, NULL },
    { API_KEY_NONE, "POST", "/api/v3/batches", TOKEN, NULL },
    { API_KEY_NONE, "POST", "/api/v1/waitpoints/tokens/{token}/complete", TOKEN, NULL },
    { API_KEY_NONE, "POST", "/realtime/v1/streams/{run}/input/k", TOKEN, NULL },
    { API_KEY_NONE, "GET", "/api/v1/packets/{*}", TOKEN, NULL },
    { API_KEY_NONE, "POST", "/api/v1/auth/public-tokens", TOKEN, NULL },
    { API_KEY_NONE, "GET", "/{*}", TOKEN, NULL },
    { 0 },
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_call(calls, data, size);
}
