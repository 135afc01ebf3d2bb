/* fuzz_forwarded - the first line as trusted proxies, the rest as X-Forwarded-For.
 *
 * Any address that is read can be printed and read again, and the range of that text
 * contains it. */
#include <assert.h>
#include <stdint.h>

#include "net/address.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_address(const struct address *address)
{
    char text[ADDRESS_TEXT];
    struct address again;
    struct ranges ranges;
    struct slice wrong;
    address_print(address, text);
    if (!address->is_ip)
        return;
    assert(address_read(slice_of(text), &again));
    assert(memcmp(address->ip, again.ip, sizeof(again.ip)) == 0);
    assert(ranges_read(slice_of(text), &ranges, &wrong));
    assert(ranges_hold(&ranges, address));
    ranges_finish(&ranges);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice header = { (const char *)data, size }, list, wrong;
    struct ranges ranges;
    struct address client = { 0 };
    slice_split(&header, '\n', &list);
    if (!ranges_read(list, &ranges, &wrong)) {
        assert(wrong.len);
        return 0;
    }
    ranges.has_unix = true; /* otherwise the header would not be read */
    bool further = address_follow(header, &ranges, &client);
    assert(further == ranges_hold(&ranges, &client) || !further);
    check_address(&client);
    ranges_finish(&ranges);
    return 0;
}
