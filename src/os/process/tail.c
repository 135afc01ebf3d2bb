/* tail.c - a ring of bytes that is put in order when its text is requested. */
#include "os/process/tail.h"

#include "base/mem.h"

void tail_init(struct tail *tail, size_t limit)
{
    *tail = (struct tail){ .limit = limit };
}

void tail_finish(struct tail *tail)
{
    free(tail->ring);
    *tail = (struct tail){ 0 };
}

static void put(struct tail *tail, struct slice text)
{
    size_t first = tail->limit - tail->at < text.len ? tail->limit - tail->at : text.len;
    memcpy(tail->ring + tail->at, text.ptr, first);
    memcpy(tail->ring, text.ptr + first, text.len - first);
    tail->at = (tail->at + text.len) % tail->limit;
}

void tail_add(struct tail *tail, struct slice text)
{
    if (!text.len || !tail->limit)
        return;
    if (!tail->ring)
        tail->ring = mem_alloc(tail->limit);
    size_t all = tail->len + text.len;
    tail->len = all < tail->limit ? all : tail->limit;
    tail->dropped += all - tail->len;
    if (text.len > tail->limit)
        text = slice_from(text, text.len - tail->limit);
    put(tail, text);
}

/* Moves the oldest byte to the beginning of the ring. */
static void put_in_order(struct tail *tail)
{
    size_t oldest = (tail->at + tail->limit - tail->len) % tail->limit;
    if (!oldest)
        return;
    char *ordered = mem_alloc(tail->limit);
    memcpy(ordered, tail->ring + oldest, tail->limit - oldest);
    memcpy(ordered + tail->limit - oldest, tail->ring, oldest);
    free(tail->ring);
    tail->ring = ordered;
    tail->at = tail->len % tail->limit;
}

/* Removes the rest of a character from the front: at most three bytes. */
static struct slice from_whole_character(struct slice text)
{
    for (int i = 0; i < 3 && text.len && ((unsigned char)text.ptr[0] & 0xC0) == 0x80; i++)
        text = slice_from(text, 1);
    return text;
}

struct slice tail_text(struct tail *tail)
{
    if (!tail->len)
        return SLICE("");
    put_in_order(tail);
    struct slice text = { tail->ring, tail->len };
    return tail->dropped ? from_whole_character(text) : text;
}

struct slice tail_lines(struct tail *tail, unsigned lines, size_t bytes)
{
    struct slice text = tail_text(tail);
    size_t end = text.len - (text.len && text.ptr[text.len - 1] == '\n');
    size_t begin = text.len;
    for (size_t at = end; lines && at <= end; at--) {
        if (at && text.ptr[at - 1] != '\n')
            continue;
        if (text.len - at > bytes)
            break;
        begin = at;
        lines--;
        if (!at)
            break;
    }
    if (begin == text.len && lines && text.len > bytes)
        return from_whole_character(slice_from(text, text.len - bytes));
    return slice_from(text, begin);
}
