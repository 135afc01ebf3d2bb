/* signing.c - takes the first lines of an input, and signs what they name. */
#include "tests/fuzz/signing.h"

#include "accounts/auth/jwt.h"
#include "accounts/auth/signed_url.h"

static struct slice take_line(struct slice *input)
{
    struct slice line;
    if (!slice_split(input, '\n', &line))
        line = SLICE("");
    if (!input->ptr)
        *input = SLICE("");
    return line;
}

static void add_token(const struct account *account, struct slice claims, struct buf *out)
{
    static const char mark[] = "@env";
    const size_t len = sizeof(mark) - 1;
    struct buf text = { 0 };
    while (claims.len) {
        if (slice_starts(claims, mark)) {
            buf_add_text(&text, account->id);
            claims = slice_from(claims, len);
        } else {
            buf_add_char(&text, claims.ptr[0]);
            claims = slice_from(claims, 1);
        }
    }
    jwt_sign(buf_slice(&text), slice_of(account->secret_key), out);
    buf_finish(&text);
}

/* Escapes all but the plainest bytes, so that they arrive as they were signed. */
static void add_path(struct buf *out, struct slice name)
{
    for (size_t i = 0; i < name.len; i++) {
        unsigned char c = (unsigned char)name.ptr[i];
        if (c == '/' || c == '.' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z'))
            buf_add_char(out, (char)c);
        else
            buf_print(out, "%%%02X", c);
    }
}

static void add_packet(const struct account *account, const char *method,
                       struct slice *input, struct buf *out)
{
    struct slice name = take_line(input), digits = take_line(input);
    int64_t expires_s = url_never_s;
    char signature[URL_SIGNATURE_LEN + 1];
    text_to_i64(digits, &expires_s);
    url_sign(account, method, name, expires_s, signature);
    buf_print(out, "/packets/v1/%s/", account->id);
    add_path(out, name);
    buf_print(out, "?expires=%lld&signature=%s", (long long)expires_s, signature);
}

static void add_callback(const struct account *account, struct slice id, struct buf *out)
{
    char signature[URL_SIGNATURE_LEN + 1];
    url_sign(account, "POST", id, url_never_s, signature);
    buf_add_text(out, "/api/v1/waitpoints/tokens/");
    add_path(out, id);
    buf_print(out, "/callback/%s/%s", account->id, signature);
}

bool signing_add(const struct account *account, struct slice name, struct slice *input,
                 struct buf *out)
{
    if (slice_is(name, "public token"))
        add_token(account, take_line(input), out);
    else if (slice_is(name, "signed download"))
        add_packet(account, "GET", input, out);
    else if (slice_is(name, "signed upload"))
        add_packet(account, "PUT", input, out);
    else if (slice_is(name, "signed callback"))
        add_callback(account, take_line(input), out);
    else
        return false;
    return true;
}
