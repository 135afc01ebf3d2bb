/* admin_access.c - checks who may use the admin listener, and read metrics elsewhere. */
#include "api/ops/admin_access.h"

#include "net/address.h"

/* Compares secrets in a time that does not reveal how much of the given one was right. */
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

enum err admin_check_access(struct api_call *call)
{
    if (address_is_of_host(http_header(call->x, "host")) || admin_has_metrics_token(call))
        return OK;
    return explain(&call->why, ERR_FORBIDDEN,
                   "Invalid Host; use an IP address or localhost, or send the metrics "
                   "token as bearer token");
}
