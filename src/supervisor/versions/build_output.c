/* build_output.c - a bounded buffer for the log, and the last lines of standard error. */
#include "supervisor/versions/build_output.h"

#include "base/utf8.h"

enum {
    WAITING_MAX = 512 * 1024, /* bytes */
    TAIL_BYTES = 16 * 1024,
    ERROR_LINES = 50,
    ERROR_BYTES = 4096,
};

void build_output_init(struct build_output *output)
{
    *output = (struct build_output){ 0 };
    tail_init(&output->errors, TAIL_BYTES);
}

void build_output_finish(struct build_output *output)
{
    buf_finish(&output->waiting);
    tail_finish(&output->errors);
    *output = (struct build_output){ 0 };
}

void build_output_add(struct build_output *output, struct slice text)
{
    size_t room = WAITING_MAX > output->waiting.len ? WAITING_MAX - output->waiting.len : 0;
    size_t taken = output->left_out || text.len > room ? 0 : text.len;
    buf_add(&output->waiting, (struct slice){ text.ptr, taken });
    output->left_out += text.len - taken;
}

void build_output_add_error(struct build_output *output, struct slice text)
{
    build_output_add(output, text);
    tail_add(&output->errors, text);
}

void build_output_forget_errors(struct build_output *output)
{
    tail_finish(&output->errors);
    tail_init(&output->errors, TAIL_BYTES);
}

struct slice build_output_errors(struct build_output *output)
{
    return tail_lines(&output->errors, ERROR_LINES, ERROR_BYTES);
}

/* Returns the length of the first character; 0 if it is invalid or incomplete. */
static size_t character_at(struct slice text)
{
    uint8_t low, high;
    unsigned char first = (unsigned char)text.ptr[0];
    if (first < 0x80)
        return 1;
    size_t more = utf8_lead(first, &low, &high);
    if (!more || text.len <= more)
        return 0;
    for (size_t i = 1; i <= more; i++) {
        unsigned char next = (unsigned char)text.ptr[i];
        if (next < (i == 1 ? low : 0x80) || next > (i == 1 ? high : 0xBF))
            return 0;
    }
    return more + 1;
}

void build_output_clean(struct slice text, struct buf *out)
{
    while (text.len) {
        size_t len = text.ptr[0] ? character_at(text) : 0;
        if (len)
            buf_add(out, (struct slice){ text.ptr, len });
        else
            buf_add_char(out, '?');
        text = slice_from(text, len ? len : 1);
    }
}

/* Returns the length of the next piece. A character that would be cut stays for the next
 * one. */
static size_t cut(const struct buf *waiting)
{
    size_t len = OUTPUT_PIECE_MAX;
    if (waiting->len <= len)
        return waiting->len;
    for (size_t back = 0; back < 3 && ((unsigned char)waiting->ptr[len] & 0xC0) == 0x80;
         back++)
        len--;
    return len;
}

struct bytes *build_output_take(struct build_output *output)
{
    struct buf piece = { 0 };
    size_t len = cut(&output->waiting);
    if (!len && !output->left_out)
        return NULL;
    build_output_clean((struct slice){ output->waiting.ptr, len }, &piece);
    buf_drop(&output->waiting, len);
    if (!output->waiting.len && output->left_out) {
        buf_print(&piece, "\n[%llu bytes of the log omitted]\n",
                  (unsigned long long)output->left_out);
        output->left_out = 0;
    }
    struct bytes *taken = buf_to_bytes(&piece);
    buf_finish(&piece);
    return taken;
}
