/* packet_name.c - valid packet names, their signed URLs, and who may read them. */
#include "api/packets/packet_name.h"

#include "accounts/auth/signed_url.h"
#include "api/request/hidden.h"

enum { URL_TTL_S = 3600 };

/* ---- names ---- */

enum err packet_check_name(struct slice name, struct failure *why)
{
    struct slice rest = name, segment;
    if (!name.len || name.len > PACKET_NAME_MAX)
        return explain(why, ERR_INVALID, "The name of a packet must have 1 to %d bytes",
                       PACKET_NAME_MAX);
    while (slice_split(&rest, '/', &segment))
        if (!segment.len || slice_is(segment, ".") || slice_is(segment, ".."))
            return explain(why, ERR_INVALID,
                           "The name of a packet must not have empty segments, \".\" "
                           "or \"..\"");
    for (size_t i = 0; i < name.len; i++)
        if ((unsigned char)name.ptr[i] < ' ' || name.ptr[i] == 0x7f)
            return explain(why, ERR_INVALID,
                           "The name of a packet must not have control characters");
    return OK;
}

static const char outputs[] = "~output/";

void packet_name_output(struct slice id, struct buf *out)
{
    buf_print(out, "%s%.*s", outputs, SLICE_ARG(id));
}

bool packet_is_output(struct slice name, struct slice *id)
{
    if (!slice_starts(name, outputs))
        return false;
    *id = slice_from(name, sizeof(outputs) - 1);
    return true;
}

/* ---- URLs ---- */

/* Escapes a name, but not its slashes: clients see it as a path. */
static void add_path(struct buf *out, struct slice name)
{
    for (size_t i = 0; i < name.len; i++) {
        unsigned char c = (unsigned char)name.ptr[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                     (c >= '0' && c <= '9') || (c && strchr("-._~/", c));
        if (plain)
            buf_add_char(out, (char)c);
        else
            buf_print(out, "%%%02X", c);
    }
}

void packet_url(struct api_call *call, const struct account *account, const char *method,
                struct slice name, struct buf *out)
{
    int64_t now_ms = loop_wall_ms(engine_loop(api_engine(call->api)));
    int64_t expires_s = now_ms / 1000 + URL_TTL_S;
    char signature[URL_SIGNATURE_LEN + 1];

    url_sign(account, method, name, expires_s, signature);
    api_base_url(call, out);
    buf_print(out, "/packets/v1/%s/", account->id);
    add_path(out, name);
    buf_print(out, "?expires=%lld&signature=%s", (long long)expires_s, signature);
}

/* ---- authorization ---- */

bool packet_any_is_open_to(const struct identity *who)
{
    return identity_may(who, "read", "runs", (struct slice){ 0 }) &&
           !hidden_contents(hidden_fields(who));
}

enum err packet_check_named(struct api_call *call, const struct run *run)
{
    if (!slice_is(bytes_slice(run_rare(run)->payload_type), "application/store") ||
        packet_any_is_open_to(call->identity))
        return OK;
    return explain(&call->why, ERR_FORBIDDEN,
                   "This token cannot name a stored packet as a payload: it may not read "
                   "every run");
}
