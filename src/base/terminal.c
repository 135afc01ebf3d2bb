/* terminal.c - finds characters that a terminal would obey, and replaces them. */
#include "base/terminal.h"

#include <stdbool.h>

#include "base/text.h"

uint16_t terminal_interprets(struct slice text, size_t *len)
{
    const unsigned char *at = (const unsigned char *)text.ptr;
    *len = at[0] == 0xC2 ? 2 : at[0] == 0xE2 ? 3 : 1;
    if (at[0] == 0x7F)
        return 0x7F;
    if (text.len < *len)
        return 0;
    if (at[0] == 0xC2 && at[1] <= 0x9F)
        return at[1];
    if (at[0] == 0xE2 && at[1] == 0x80 && at[2] >= 0xA8 && at[2] <= 0xAE)
        return (uint16_t)(0x2000 + (at[2] & 0x3F));
    if (at[0] == 0xE2 && at[1] == 0x81 && at[2] >= 0xA6 && at[2] <= 0xA9)
        return (uint16_t)(0x2040 + (at[2] & 0x3F));
    return 0;
}

/* Returns true for C0 controls, except newline and tab, which are safe to print. */
static bool is_control(char c)
{
    return (unsigned char)c < ' ' && c != '\n' && c != '\t';
}

void terminal_show(FILE *out, struct slice text)
{
    bool is_utf8 = text_is_utf8(text);
    for (size_t len; text.len; text = slice_from(text, len)) {
        bool obeyed = is_utf8 && terminal_interprets(text, &len);
        if (!obeyed)
            len = 1;
        if (obeyed || is_control(*text.ptr) || (!is_utf8 && *text.ptr & 0x80))
            fputc('?', out);
        else
            fputc(*text.ptr, out);
    }
}

void terminal_print_failure(const char *reason)
{
    fputs("runcast: ", stderr);
    terminal_show(stderr, slice_of(reason));
    fputc('\n', stderr);
}
