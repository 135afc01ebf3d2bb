/* cookie.c - reads and sets the cookie of a lasting sign-in (RFC 6265). */
#include "api/browser/cookie.h"

#define PREFIX "__Secure-runcast-" /* a browser refuses such a name without Secure */

static struct slice id_of(const struct api_call *call)
{
    return slice_of(engine_store(api_engine(call->api))->epoch);
}

static bool is_ours(struct slice name, struct slice id)
{
    return slice_starts(name, PREFIX) &&
           slice_equal(slice_from(name, sizeof(PREFIX) - 1), id);
}

struct slice cookie_read(const struct api_call *call, size_t place)
{
    struct slice list, pair, name, id = id_of(call);
    size_t at = 0, count = 0;
    while (http_next_header(call->x, "cookie", &at, &list)) {
        while (slice_split(&list, ';', &pair)) {
            pair = slice_trim(pair);
            if (slice_split(&pair, '=', &name) && is_ours(name, id) && count++ == place)
                return pair;
        }
    }
    return (struct slice){ 0 };
}

void cookie_set(struct api_call *call, struct slice code, int64_t lives_ms)
{
    struct buf text = { 0 };
    buf_add_text(&text, PREFIX);
    buf_add(&text, id_of(call));
    buf_add_char(&text, '=');
    buf_add(&text, code);
    buf_add_text(&text, "; Path=");
    buf_add(&text, api_path_prefix(call->api));
    buf_print(&text, "/dashboard/session; Max-Age=%lld; Secure; HttpOnly; SameSite=Strict",
              (long long)(lives_ms / 1000));
    api_add_header(call, "set-cookie", buf_slice(&text));
    buf_finish(&text);
}
