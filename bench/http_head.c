/* http_head.c - the head of an HTTP/1.1 response: its status, and where the body ends. */
#include "http_head.h"

#include <stdlib.h>
#include <strings.h>

#include "base/text.h"

static bool name_is(struct slice name, const char *text)
{
    return name.len == strlen(text) && strncasecmp(name.ptr, text, name.len) == 0;
}

static void read_field(struct http_head *head, struct slice line)
{
    struct slice name, value = line;
    if (!slice_split(&value, ':', &name) || !value.ptr)
        return;
    value = slice_trim(value);
    uint64_t number;
    if (name_is(name, "content-length") && text_to_u64(value, &number) == OK)
        head->body_len = number;
    else if (name_is(name, "transfer-encoding"))
        head->chunked = name_is(value, "chunked");
    else if (name_is(name, "connection"))
        head->closes = name_is(value, "close");
}

bool http_head_read(struct slice in, struct http_head *head)
{
    size_t skipped = 0;
    for (;;) {
        const char *end = in.ptr ? memmem(in.ptr, in.len, "\r\n\r\n", 4) : NULL;
        if (!end)
            return false;
        size_t len = (size_t)(end - in.ptr) + 4;
        struct slice line, lines = { in.ptr, len - 4 };
        *head = (struct http_head){ .len = skipped + len };
        slice_split(&lines, '\n', &line);
        uint64_t status = 0;
        if (slice_starts(line, "HTTP/1.1 ") && line.len >= 12)
            (void)text_to_u64((struct slice){ line.ptr + 9, 3 }, &status);
        head->status = (int)status;
        head->fields = lines;
        while (slice_split(&lines, '\n', &line))
            read_field(head, line);
        if (status / 100 != 1)
            return true;
        skipped += len;
        in = slice_from(in, len);
    }
}

struct slice http_head_field(const struct http_head *head, const char *name)
{
    struct slice line, lines = head->fields;
    while (slice_split(&lines, '\n', &line)) {
        struct slice field, value = line;
        if (slice_split(&value, ':', &field) && value.ptr && name_is(field, name))
            return slice_trim(value);
    }
    return (struct slice){ 0 };
}

size_t http_chunk_read(struct slice in, struct slice *content)
{
    const char *end = in.ptr ? memmem(in.ptr, in.len, "\r\n", 2) : NULL;
    if (!end)
        return 0;
    size_t size = strtoul(in.ptr, NULL, 16);
    struct slice rest = slice_from(in, (size_t)(end - in.ptr) + 2);
    if (rest.len < size + 2)
        return 0;
    *content = (struct slice){ rest.ptr, size };
    return in.len - rest.len + size + 2;
}
