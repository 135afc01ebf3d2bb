/* address.c - reads addresses and ranges of them, and follows X-Forwarded-For headers. */
#include "net/address.h"

#include <arpa/inet.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"

enum { IP_BITS = 128, MAPPED_BITS = 96 };

struct range {
    unsigned char ip[16];
    unsigned bits;
};

static const unsigned char mapped[12] = { [10] = 0xFF, [11] = 0xFF };

struct address address_of_ip4(const unsigned char ip[4])
{
    struct address address = { .is_ip = true };
    memcpy(address.ip, mapped, sizeof(mapped));
    memcpy(address.ip + sizeof(mapped), ip, 4);
    return address;
}

struct address address_of_ip6(const unsigned char ip[16])
{
    struct address address = { .is_ip = true };
    memcpy(address.ip, ip, sizeof(address.ip));
    return address;
}

struct address address_of_socket(const struct sockaddr *from)
{
    unsigned char ip[16];
    if (from->sa_family == AF_INET) {
        memcpy(ip, &((const struct sockaddr_in *)from)->sin_addr, 4);
        return address_of_ip4(ip);
    }
    if (from->sa_family != AF_INET6)
        return (struct address){ 0 };
    memcpy(ip, &((const struct sockaddr_in6 *)from)->sin6_addr, sizeof(ip));
    return address_of_ip6(ip);
}

bool address_is_ip4(const struct address *address)
{
    return memcmp(address->ip, mapped, sizeof(mapped)) == 0;
}

static bool read_ip(struct slice text, struct address *address)
{
    char copy[ADDRESS_TEXT];
    unsigned char ip[16];
    if (!text.len || text.len >= sizeof(copy) || memchr(text.ptr, 0, text.len))
        return false;
    memcpy(copy, text.ptr, text.len);
    copy[text.len] = '\0';
    if (inet_pton(AF_INET, copy, ip) == 1)
        *address = address_of_ip4(ip);
    else if (inet_pton(AF_INET6, copy, ip) == 1)
        *address = address_of_ip6(ip);
    else
        return false;
    return true;
}

static bool is_port(struct slice text)
{
    uint64_t port;
    return text_to_u64(text, &port) == OK && port <= UINT16_MAX;
}

bool address_read(struct slice text, struct address *address)
{
    struct slice port = text, host;
    bool bracket = slice_starts(text, "[");
    if (bracket) {
        slice_split(&port, ']', &host);
        if (!port.ptr || (port.len && port.ptr[0] != ':') ||
            !memchr(host.ptr, ':', host.len))
            return false;
        return (!port.len || is_port(slice_from(port, 1))) &&
               read_ip(slice_from(host, 1), address);
    }
    slice_split(&port, ':', &host);
    bool has_port = port.ptr && !memchr(port.ptr, ':', port.len);
    if (has_port && !is_port(port))
        return false;
    return read_ip(has_port ? host : text, address);
}

bool address_is_of_host(struct slice host)
{
    struct address address;
    struct slice rest = host, name;
    if (slice_split(&rest, ':', &name) && slice_is(name, "localhost"))
        return true;
    return address_read(host, &address);
}

void address_print(const struct address *address, char text[ADDRESS_TEXT])
{
    if (!address->is_ip)
        memcpy(text, "unix", sizeof("unix"));
    else if (address_is_ip4(address))
        inet_ntop(AF_INET, address->ip + sizeof(mapped), text, ADDRESS_TEXT);
    else
        inet_ntop(AF_INET6, address->ip, text, ADDRESS_TEXT);
}

bool address_is_loopback(const struct address *address)
{
    static const unsigned char ip6[16] = { [15] = 1 };
    if (!address->is_ip)
        return false;
    if (address_is_ip4(address))
        return address->ip[sizeof(mapped)] == 127;
    return memcmp(address->ip, ip6, sizeof(ip6)) == 0;
}

/* ---- ranges ---- */

static bool read_range(struct slice text, struct range *range)
{
    struct slice bits = text, host;
    struct address address;
    uint64_t count;
    slice_split(&bits, '/', &host);
    if (!read_ip(host, &address))
        return false;
    bool four = address_is_ip4(&address) && !memchr(host.ptr, ':', host.len);
    unsigned most = four ? IP_BITS - MAPPED_BITS : IP_BITS;
    if (!bits.ptr)
        count = most;
    else if (text_to_u64(bits, &count) || count > most)
        return false;
    memcpy(range->ip, address.ip, sizeof(range->ip));
    range->bits = (unsigned)count + (four ? MAPPED_BITS : 0);
    return true;
}

static struct slice next_word(struct slice *rest)
{
    size_t begin = 0, end;
    while (begin < rest->len && strchr(" ,\t", rest->ptr[begin]))
        begin++;
    for (end = begin; end < rest->len && !strchr(" ,\t", rest->ptr[end]);)
        end++;
    struct slice word = { rest->ptr + begin, end - begin };
    *rest = slice_from(*rest, end);
    return word;
}

bool ranges_read(struct slice text, struct ranges *ranges, struct slice *wrong)
{
    struct slice word;
    struct range range;
    *ranges = (struct ranges){ 0 };
    while ((word = next_word(&text)).len) {
        if (slice_is(word, "unix")) {
            ranges->has_unix = true;
            continue;
        }
        if (!read_range(word, &range)) {
            *wrong = word;
            ranges_finish(ranges);
            return false;
        }
        ranges->list =
            mem_resize(ranges->list, (ranges->count + 1) * sizeof(*ranges->list));
        ranges->list[ranges->count++] = range;
    }
    return true;
}

void ranges_finish(struct ranges *ranges)
{
    free(ranges->list);
    *ranges = (struct ranges){ 0 };
}

static bool range_holds(const struct range *range, const struct address *address)
{
    unsigned bytes = range->bits / 8, rest = range->bits % 8;
    if (memcmp(range->ip, address->ip, bytes) != 0)
        return false;
    unsigned char mask = (unsigned char)(0xFF00u >> rest);
    return !rest || !((range->ip[bytes] ^ address->ip[bytes]) & mask);
}

bool ranges_hold(const struct ranges *ranges, const struct address *address)
{
    if (!address->is_ip)
        return ranges->has_unix;
    for (size_t i = 0; i < ranges->count; i++)
        if (range_holds(&ranges->list[i], address))
            return true;
    return false;
}

/* ---- X-Forwarded-For ---- */

bool address_follow(struct slice forwarded_for, const struct ranges *trusted,
                    struct address *client)
{
    struct slice rest = forwarded_for;
    while (rest.len && ranges_hold(trusted, client)) {
        const char *comma = memrchr(rest.ptr, ',', rest.len);
        size_t begin = comma ? (size_t)(comma - rest.ptr) + 1 : 0;
        if (!address_read(slice_trim(slice_from(rest, begin)), client))
            return false;
        rest.len = comma ? begin - 1 : 0;
    }
    return ranges_hold(trusted, client);
}
