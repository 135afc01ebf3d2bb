/* proxy_header.c - reads the binary header of the PROXY protocol. */
#include "net/proxy_header.h"

#include <string.h>

enum {
    VERSION_2 = 0x20,
    COMMAND_LOCAL = 0,
    COMMAND_PROXY = 1,
    FAMILY_UNSPECIFIED = 0,
    FAMILY_IP4 = 1,
    FAMILY_IP6 = 2,
    FAMILY_UNIX = 3,
    TRANSPORT_MAX = 2, /* unspecified, stream, datagram */
    IP4_BYTES = 12,
    IP6_BYTES = 36,
    UNIX_BYTES = 216,
    TLV_HEAD = 3,
};

static const unsigned char signature[12] = "\r\n\r\n\0\r\nQUIT\n";

static unsigned read_u16(const unsigned char *at)
{
    return (unsigned)at[0] << 8 | at[1];
}

static bool tlvs_fit(const unsigned char *at, size_t len)
{
    while (len) {
        if (len < TLV_HEAD || len - TLV_HEAD < read_u16(at + 1))
            return false;
        size_t whole = TLV_HEAD + read_u16(at + 1);
        at += whole;
        len -= whole;
    }
    return true;
}

static enum proxy_status read_addresses(const unsigned char *at, size_t len,
                                        unsigned family, struct proxy_header *header)
{
    static const size_t sizes[] = { [FAMILY_UNSPECIFIED] = 0,
                                    [FAMILY_IP4] = IP4_BYTES,
                                    [FAMILY_IP6] = IP6_BYTES,
                                    [FAMILY_UNIX] = UNIX_BYTES };
    if (family == FAMILY_UNSPECIFIED)
        return PROXY_DONE; /* the rest is not for us */
    if (len < sizes[family] || !tlvs_fit(at + sizes[family], len - sizes[family]))
        return PROXY_BAD;
    header->names_client = family != FAMILY_UNIX;
    if (family == FAMILY_IP4)
        header->client = address_of_ip4(at);
    else if (family == FAMILY_IP6)
        header->client = address_of_ip6(at);
    return PROXY_DONE;
}

enum proxy_status proxy_header_read(struct slice bytes, struct proxy_header *header)
{
    const unsigned char *at = (const unsigned char *)bytes.ptr;
    size_t known = bytes.len < sizeof(signature) ? bytes.len : sizeof(signature);
    if (known && memcmp(at, signature, known) != 0)
        return PROXY_BAD;
    if (bytes.len < PROXY_HEADER_FIXED)
        return PROXY_MORE;

    unsigned version = at[12] & 0xF0, command = at[12] & 0x0F;
    unsigned family = at[13] >> 4, transport = at[13] & 0x0F;
    size_t len = read_u16(at + 14);
    if (version != VERSION_2 || command > COMMAND_PROXY || family > FAMILY_UNIX ||
        transport > TRANSPORT_MAX || PROXY_HEADER_FIXED + len > PROXY_HEADER_MAX)
        return PROXY_BAD;
    if (bytes.len < PROXY_HEADER_FIXED + len)
        return PROXY_MORE;
    *header = (struct proxy_header){ .len = PROXY_HEADER_FIXED + len };
    if (command == COMMAND_LOCAL)
        return PROXY_DONE;
    return read_addresses(at + PROXY_HEADER_FIXED, len, family, header);
}

size_t proxy_header_missing(struct slice bytes)
{
    const unsigned char *at = (const unsigned char *)bytes.ptr;
    if (bytes.len < PROXY_HEADER_FIXED)
        return PROXY_HEADER_FIXED - bytes.len;
    return PROXY_HEADER_FIXED + read_u16(at + 14) - bytes.len;
}
