/* relayed.c - writes and reads the origin of a relayed request. */
#include "net/http/relayed.h"

#include <string.h>

enum { FLAGS_LEN = 2 };

void relayed_write(const struct exchange *x, struct buf *out)
{
    buf_add_text(out, x->peer);
    buf_add_char(out, ' ');
    buf_add_char(out, x->secure ? 's' : '-');
    buf_add_char(out, x->hidden ? 'h' : '-');
}

static bool is_flag(char c, char flag)
{
    return c == flag || c == '-';
}

bool relayed_read(struct slice text, struct exchange *x)
{
    if (text.len < FLAGS_LEN + 2 || text.len - FLAGS_LEN > sizeof(x->peer))
        return false;
    size_t len = text.len - FLAGS_LEN - 1;
    const char *flags = text.ptr + len + 1;
    if (text.ptr[len] != ' ' || memchr(text.ptr, ' ', len) || memchr(text.ptr, 0, len) ||
        !is_flag(flags[0], 's') || !is_flag(flags[1], 'h'))
        return false;
    memcpy(x->peer, text.ptr, len);
    x->peer[len] = '\0';
    x->secure = flags[0] == 's';
    x->hidden = flags[1] == 'h';
    x->relayed = true;
    return true;
}
