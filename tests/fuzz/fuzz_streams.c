/* fuzz_streams - streams of runs: lines that are written, and where a reader continues. */
#include "tests/fuzz/calls.h"

static const struct fuzz_call calls[] = {
    { API_KEY_DEV, "POST", "/realtime/v1/streams/{run}/self/k", NULL, NULL },
    { API_KEY_DEV, "POST", "/realtime/v1/streams/{run}/self/k/append", NULL, NULL },
    { API_KEY_DEV, "POST", "/realtime/v1/streams/{run}/input/k", NULL, NULL },
    { API_KEY_DEV, "GET", "/realtime/v1/streams/{run}/k", "Last-Event-ID: {*}\r\n", NULL },
    { API_KEY_DEV, "GET", "/realtime/v1/streams/{run}/input/k", "Last-Event-ID: {*}\r\n",
      NULL },
    { API_KEY_DEV, "PUT", "/realtime/v1/streams/{run}/self/{*}", NULL, NULL },
    { API_KEY_DEV, "HEAD", "/realtime/v1/streams/{run}/self/{*}", NULL, NULL },
    { API_KEY_DEV, "GET", "/realtime/v1/events?all=1", "Last-Event-ID: {*}\r\n", NULL },
    { API_KEY_DEV, "POST", "/realtime/v1/streams/{run}/self/{*}/append", NULL, NULL },
    { API_KEY_DEV, "POST", "/realtime/v1/streams/{executing}/self/k",
      "X-Client-Id: c\r\nX-Resume-From-Chunk: {*}\r\n", NULL },
    { 0 },
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_call(calls, data, size);
}
