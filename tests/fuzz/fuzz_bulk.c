/* fuzz_bulk - bulk actions: their selection of runs, and the cursors of their list. */
#include "tests/fuzz/calls.h"

static const struct fuzz_call calls[] = {
    { API_KEY_DEV, "POST", "/api/v1/bulk-actions", NULL, "/api/v1/bulk-actions/{id}" },
    { API_KEY_DEV, "GET", "/api/v1/bulk-actions?{*}", NULL, NULL },
    { API_KEY_DEV, "GET", "/api/v1/bulk-actions/{*}", NULL, NULL },
    { API_KEY_DEV, "POST", "/api/v1/bulk-actions/{bulk}/abort", NULL, NULL },
    { 0 },
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_call(calls, data, size);
}
