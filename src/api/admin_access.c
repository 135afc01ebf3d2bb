/* admin_access.c - who may ask the admin listener, and who may read metrics elsewhere. */
#include "api/admin_access.h"

#include <arpa/inet.h>

/* Compares secrets without telling by its time how much of the given one was right. */
static bool same_secret(struct slice given, struct slice wanted)
{
    unsigned char different = given.len != wanted.len;
    for (size_t i = 0; i < given.len && i < wanted.len; i++)
        different |= (unsigned char)(given.ptr[i] ^ wanted.ptr[i]);
    return !different;
}

bool admin_has_metrics_token(const struct api_call *call)
{
    struct slice wanted = slice_of(api_options(call->api)->metrics_token);
    struct slice given = http_header(call->x, "authorization");
    if (!wanted.len)
        return false;
    if (slice_starts(given, "Bearer "))
        given = slice_from(given, 7);
    return same_secret(given, wanted);
}

/* A web page may give its own name any address (DNS rebinding): a browser then sends that
 * name as Host, never an address. HTTP/1.0 may have none, which names nothing. */
static bool names_an_address(struct slice host)
{
    struct slice name;
    bool six = slice_starts(host, "[");
    if (!slice_split(&host, six ? ']' : ':', &name))
        return false;
    name = slice_from(name, six);
    char text[INET6_ADDRSTRLEN];
    unsigned char binary[sizeof(struct in6_addr)];
    if (slice_is(name, "localhost"))
        return true;
    if (name.len >= sizeof(text))
        return false;
    memcpy(text, name.ptr, name.len);
    text[name.len] = '\0';
    return inet_pton(six ? AF_INET6 : AF_INET, text, binary) == 1;
}

enum err admin_check_access(struct api_call *call)
{
    if (names_an_address(http_header(call->x, "host")) || admin_has_metrics_token(call))
        return OK;
    return explain(&call->why, ERR_FORBIDDEN,
                   "The admin listener is asked by an address or localhost as Host; by "
                   "another name with the metrics token as bearer token");
}
