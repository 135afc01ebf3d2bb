/* fuzz_bulk - bulk actions: which runs are meant, and the cursors of their list. */
#include "tests/fuzz/calls.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct fuzz_call calls[] = {
    { API_KEY_DEV, "POST", "/api/v1/bulk-actions", NULL, "/api/v1/bulk-actions/{id}" },
    { API_KEY_DEV, "GET", "/api/v1/bulk-actions?{*}", NULL, NULL },
    { API_KEY_DEV, "GET", "/api/v1/bulk-actions/{*}", NULL, NULL },
    { API_KEY_DEV, "POST", "/api/v1/bulk-actions/{bulk}/abort", NULL, NULL },
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_calls(calls, sizeof(calls) / sizeof(calls[0]), data, size);
    return 0;
}
