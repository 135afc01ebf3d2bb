/* fuzz_proxy - any bytes as the beginning of a connection with the PROXY protocol.
 *
 * A header that is rejected stays rejected with more bytes, a partial one needs more, and a
 * complete one ends within the bytes. */
#include <assert.h>
#include <stdint.h>

#include "net/proxy_header.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice bytes = { (const char *)data, size };
    struct proxy_header header, again;
    enum proxy_status whole = proxy_header_read(bytes, &header);
    size_t most = whole == PROXY_DONE ? header.len : size;
    if (whole == PROXY_DONE)
        assert(header.len >= PROXY_HEADER_FIXED && header.len <= size &&
               header.len <= PROXY_HEADER_MAX);
    for (size_t len = 0; len < most && len < 64; len++) {
        enum proxy_status part =
            proxy_header_read((struct slice){ bytes.ptr, len }, &again);
        assert(part == PROXY_MORE || (part == PROXY_BAD && whole == PROXY_BAD));
    }
    return 0;
}
