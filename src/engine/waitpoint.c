/* waitpoint.c - the document of a waitpoint, written and read. */
#include "engine/waitpoint.h"

#include "base/mem.h"
#include "base/scan.h"

void waitpoint_finish(struct waitpoint *waitpoint)
{
    bytes_unref(waitpoint->key);
    bytes_unref(waitpoint->output);
    bytes_unref(waitpoint->output_type);
    tag_list_unref(waitpoint->tags);
    *waitpoint = (struct waitpoint){ 0 };
}

/* ---- writing ---- */

static void add_text(struct buf *out, const char *name, const struct bytes *text)
{
    if (!text)
        return;
    buf_print(out, ",\"%s\":", name);
    buf_add_json(out, bytes_slice(text));
}

struct bytes *waitpoint_write(const struct waitpoint *waitpoint)
{
    const struct tag_list *tags = waitpoint->tags;
    struct buf out = { 0 };
    buf_print(&out,
              "{\"id\":\"%s\",\"isTime\":%s,\"createdAt\":%lld,\"completedAt\":%lld,"
              "\"until\":%lld,\"keyExpiresAt\":%lld",
              waitpoint->id, waitpoint->is_time ? "true" : "false",
              (long long)waitpoint->created_at, (long long)waitpoint->completed_at,
              (long long)waitpoint->until, (long long)waitpoint->key_expires_at);
    add_text(&out, "key", waitpoint->key);
    add_text(&out, "output", waitpoint->output);
    add_text(&out, "outputType", waitpoint->output_type);
    buf_add_text(&out, ",\"tags\":[");
    for (uint32_t i = 0; tags && i < tags->count; i++) {
        if (i)
            buf_add_char(&out, ',');
        buf_add_json(&out, bytes_slice(tags->names[i]));
    }
    buf_add_text(&out, "]}");
    struct bytes *body = buf_to_bytes(&out);
    buf_finish(&out);
    return body;
}

/* ---- reading ---- */

static struct bytes *text_of(struct slice value)
{
    struct buf text = { 0 };
    struct bytes *bytes = NULL;
    if (scan_string(value, &text))
        bytes = bytes_create(buf_slice(&text));
    buf_finish(&text);
    return bytes;
}

static bool read_number(struct slice body, const char *name, int64_t *number)
{
    return text_to_i64(scan_member(body, name), number) == OK;
}

static struct tag_list *read_tags(struct slice list)
{
    struct scan_members all = scan_members(list);
    struct slice value, names[RUN_TAGS_MAX];
    struct bytes *texts[RUN_TAGS_MAX];
    size_t count = 0;
    while (count < RUN_TAGS_MAX && scan_next_element(&all, &value)) {
        texts[count] = text_of(value);
        names[count] = bytes_slice(texts[count]);
        count++;
    }
    struct tag_list *tags = tag_list_create(names, count);
    while (count)
        bytes_unref(texts[--count]);
    return tags;
}

enum err waitpoint_read(const struct document *document, struct waitpoint *waitpoint)
{
    struct slice body = bytes_slice(document->body);
    struct slice name = bytes_slice(document->name);
    struct waitpoint read = { .version = document->version };
    bool fine = scan_is_json(body) && name.len < sizeof(read.id) &&
                read_number(body, "createdAt", &read.created_at) &&
                read_number(body, "completedAt", &read.completed_at) &&
                read_number(body, "until", &read.until) &&
                read_number(body, "keyExpiresAt", &read.key_expires_at) &&
                scan_type(scan_member(body, "tags")) == SCAN_ARRAY;
    if (!fine)
        return ERR_INTERNAL;
    snprintf(read.id, sizeof(read.id), "%.*s", SLICE_ARG(name));
    read.is_time = scan_type(scan_member(body, "isTime")) == SCAN_TRUE;
    read.key = text_of(scan_member(body, "key"));
    read.output = text_of(scan_member(body, "output"));
    read.output_type = text_of(scan_member(body, "outputType"));
    read.tags = read_tags(scan_member(body, "tags"));
    *waitpoint = read;
    return OK;
}

bool waitpoint_is_completed(const struct document *document)
{
    struct waitpoint waitpoint;
    if (waitpoint_read(document, &waitpoint))
        return true;
    bool completed = waitpoint.completed_at > 0;
    waitpoint_finish(&waitpoint);
    return completed;
}
